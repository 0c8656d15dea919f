/// What a pool holds and what it decides: no lock, no clock of its own, nothing opened or closed here.
struct PoolState {
  /// Which environment is meant: its data file, or the directory that will get one.
  enum Key: Hashable {
    case file(EnvironmentRegistry.FileID)
    case directory(EnvironmentRegistry.FileID)
  }

  /// One place of the pool.
  struct Place {
    enum Phase {
      case opening
      case open(Environment)
      case closing(Environment)
    }

    var phase: Phase
    var leaseCount = 0
    /// Which time it became idle; older numbers in ``PoolState/idle`` are out of date.
    var idleNumber: UInt64 = 0
    var idleSince = ContinuousClock.now
    /// Those who wait for the open or close to end.
    var waiters: [PoolWaiter] = []
  }

  /// What somebody who wants an environment has to do.
  enum Decision {
    case lease(Environment)
    /// Open it, then say ``opened(_:_:)`` or ``failed(_:)``.
    case open
    /// Close this one, then say ``closed(_:)`` or ``stayed(_:_:)``, and ask again.
    case close(Key, Environment)
    /// Wait, and ask again.
    case wait(PoolWaiter, forRoom: Bool)
    case refuse
  }

  let countMax: Int
  var isClosed = false
  var statistics = EnvironmentPool.Statistics()
  private var places: [Key: Place] = [:]
  /// Places in the order in which they became idle, with entries that are out of date.
  private var idle: [(number: UInt64, key: Key)] = []
  private var idleStart = 0
  private var idleNumber: UInt64 = 0
  private var waitersForRoom: [PoolWaiter] = []

  init(countMax: Int) { self.countMax = countMax }

  // MARK: - Leases

  mutating func decide(_ key: Key, isFirstTry: Bool) -> Decision {
    guard !isClosed else { return .refuse }
    if var place = places[key] {
      switch place.phase {
      case .open(let environment) where environment.isClosed && place.leaseCount == 0:
        // Somebody closed it, or it broke: it is opened again in its place.
        place.phase = .opening
        places[key] = place
        statistics.missCount += 1
        return .open
      case .open(let environment):
        if place.leaseCount == 0 { statistics.leasedCount += 1 }
        place.leaseCount += 1
        places[key] = place
        if isFirstTry { statistics.hitCount += 1 }
        return .lease(environment)
      case .opening, .closing:
        let waiter = PoolWaiter()
        place.waiters.append(waiter)
        places[key] = place
        statistics.waitCount += 1
        return .wait(waiter, forRoom: false)
      }
    }
    if places.count < countMax {
      places[key] = Place(phase: .opening)
      statistics.openCount += 1
      statistics.missCount += 1
      return .open
    }
    if let (oldest, environment) = takeOldestIdle() {
      statistics.evictionCount += 1
      return .close(oldest, environment)
    }
    let waiter = PoolWaiter()
    waitersForRoom.append(waiter)
    statistics.waitCount += 1
    return .wait(waiter, forRoom: true)
  }

  /// A place that was opened is leased by its opener.
  /// - Returns: the place's key from now on, or nil when somebody else is closing it: then the
  ///   opener asks again; and those to be woken.
  mutating func opened(_ key: Key, _ environment: Environment) -> (key: Key?, waiters: [PoolWaiter])
  {
    guard var place = places.removeValue(forKey: key) else { return (nil, []) }
    let final = Key.file(environment.fileID)
    let waiters = place.waiters
    guard var other = places[final] else {
      // Found by others under its file's name meanwhile, leased, given back and closed.
      if environment.isClosed {
        statistics.openCount -= 1
        return (nil, waiters + takeWaiterForRoom())
      }
      place.waiters = []
      place.phase = .open(environment)
      place.leaseCount = 1
      places[final] = place
      statistics.leasedCount += 1
      return (final, waiters)
    }
    // It was made under its directory's name while others found the file already: one place too many.
    statistics.openCount -= 1
    guard case .open(let known) = other.phase, known === environment else {
      return (nil, waiters + takeWaiterForRoom())
    }
    if other.leaseCount == 0 { statistics.leasedCount += 1 }
    other.leaseCount += 1
    places[final] = other
    return (final, waiters + takeWaiterForRoom())
  }

  /// - Returns: those to be woken.
  mutating func failed(_ key: Key) -> [PoolWaiter] { remove(key) }

  mutating func released(_ key: Key, at now: ContinuousClock.Instant) -> [PoolWaiter] {
    guard var place = places[key] else { return [] }
    place.leaseCount -= 1
    precondition(place.leaseCount >= 0, "LMDB: a lease of the pool was given back twice")
    places[key] = place
    guard place.leaseCount == 0 else { return [] }
    statistics.leasedCount -= 1
    if case .open(let environment) = place.phase, environment.isClosed { return remove(key) }
    becomeIdle(key, at: now)
    return takeWaiterForRoom()
  }

  // MARK: - Closing

  /// The environment that was leased longest ago and is not now; it is closing then.
  mutating func takeOldestIdle(
    unusedSince limit: ContinuousClock.Instant? = nil
  ) -> (Key, Environment)? {
    while idleStart < idle.count {
      let (number, key) = idle[idleStart]
      guard var place = places[key], place.idleNumber == number, place.leaseCount == 0,
        case .open(let environment) = place.phase
      else {
        idleStart += 1
        continue
      }
      if let limit, place.idleSince > limit { return nil }
      idleStart += 1
      place.phase = .closing(environment)
      places[key] = place
      trimIdle()
      return (key, environment)
    }
    trimIdle()
    return nil
  }

  mutating func closed(_ key: Key) -> [PoolWaiter] { remove(key) }

  /// It could not be closed and is idle again.
  mutating func stayed(_ key: Key, at now: ContinuousClock.Instant) -> [PoolWaiter] {
    guard var place = places[key], case .closing(let environment) = place.phase else { return [] }
    place.phase = .open(environment)
    let waiters = place.waiters
    place.waiters = []
    places[key] = place
    becomeIdle(key, at: now)
    return waiters
  }

  /// Whether nothing is open any more.
  var isEmpty: Bool { places.isEmpty }

  /// Somebody who waited for room gave up.
  mutating func forget(_ waiter: PoolWaiter) {
    waitersForRoom.removeAll { $0 === waiter }
  }

  /// The next of those who wait for room.
  mutating func takeWaiterForRoom() -> [PoolWaiter] {
    waitersForRoom.isEmpty ? [] : [waitersForRoom.removeFirst()]
  }

  /// Nobody gets in any more.
  /// - Returns: those to be woken, so that they learn it.
  mutating func close() -> [PoolWaiter] {
    isClosed = true
    defer { waitersForRoom = [] }
    return waitersForRoom
  }

  // MARK: - Inside

  private mutating func remove(_ key: Key) -> [PoolWaiter] {
    guard let place = places.removeValue(forKey: key) else { return [] }
    statistics.openCount -= 1
    return place.waiters + takeWaiterForRoom()
  }

  private mutating func becomeIdle(_ key: Key, at now: ContinuousClock.Instant) {
    idleNumber += 1
    places[key]?.idleNumber = idleNumber
    places[key]?.idleSince = now
    idle.append((idleNumber, key))
    trimIdle()
  }

  /// Entries that are out of date never outnumber the others by more than three to one.
  private mutating func trimIdle() {
    guard idle.count > 64, idle.count > 4 * places.count || idleStart > idle.count / 2 else {
      return
    }
    idle = idle[idleStart...].filter { places[$0.key]?.idleNumber == $0.number }
    idleStart = 0
  }
}
