import Foundation
import HoldfastTesting
import HubProtocol
import ProfileSync

/// The way from one process to the hub: everything that can happen to a request happens here, and
/// what goes over it is looked at.
struct SimulatedTransport: HubEventTransport {
  let world: World
  let life: Life

  func send(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    let fate = try meet(request)
    if case .way(let fault) = fate {
      switch fault {
      case .unreachable:
        throw TransportError(code: .unreachable, description: "the network is away")
      case .lostAnswer:
        _ = try await world.ask(request)
        throw TransportError(code: .connectionLost, description: "the answer was lost")
      case .slow(let request):
        try await pause(request)
      case .duplicate:
        _ = try await world.ask(request)
      case .late(let delay):
        // A copy of it comes once more, when nobody expects it.
        world.repeatLater(request, after: delay)
      }
    }
    var request = request
    if case .hub(let fault) = fate {
      request.headers.append(HeaderField(HubHeader.fault, fault.description))
    }
    let response = try await world.ask(request)
    if world.random.happens(perThousand: 100) { try await pause(.milliseconds(40)) }
    try requireLiving()
    return response
  }

  func events(_ request: HubRequest) async throws(TransportError) -> HubEventAnswer {
    if case .way(.unreachable) = try meet(request) {
      throw TransportError(code: .unreachable, description: "the network is away")
    }
    let answer = try await world.hub.events(request)
    try requireLiving()
    return answer
  }

  private func meet(_ request: HubRequest) throws(TransportError) -> Fate? {
    try requireLiving()
    world.inspect(request, of: life.device)
    let fate = world.fate(on: life.device)
    let path = request.target.prefix { $0 != "?" }
    if fate != nil { world.counts.faults += 1 }
    world.note(
      "request of \(life.device.number): \(request.method) \(path)"
        + (fate.map { ", meets \($0)" } ?? ""))
    return fate
  }

  private func pause(_ duration: Duration) async throws(TransportError) {
    do { try await Task.sleep(for: duration) } catch {
      throw TransportError(code: .cancelled, description: "the task was cancelled")
    }
  }

  private func requireLiving() throws(TransportError) {
    guard world.isLiving(life), !Task.isCancelled else {
      throw TransportError(code: .cancelled, description: "the process has ended")
    }
  }
}

/// What happens to a request.
enum Fate: CustomStringConvertible {
  enum Way {
    case unreachable
    case lostAnswer
    case slow(Duration)
    case duplicate
    case late(Duration)
  }

  case way(Way)
  case hub(HubFault)

  var description: String {
    switch self {
    case .way(let way): "\(way)"
    case .hub(let fault): "\(fault)"
    }
  }
}

extension World {
  func fate(on device: Device) -> Fate? {
    guard !isSettling, random.happens(perThousand: device.faultRate) else { return nil }
    let kind = random.number(below: plan.mayLie ? 14 : 9)
    return switch kind {
    case 0: .way(.unreachable)
    case 1, 2: .way(.lostAnswer)
    case 3: .way(.slow(.milliseconds(random.number(below: 3_000))))
    case 4: .way(.duplicate)
    case 5: .way(.late(.milliseconds(random.number(below: 60_000))))
    case 6: .hub(.dropAfterCommit)
    case 7: .hub(.throttle(count: 1))
    case 8: .hub(.delay(milliseconds: random.number(below: 2_000)))
    case 9: .hub(.otherAccountBody)
    case 10: .hub(.otherAccountHeader)
    case 11: .hub(.cutBody())
    case 12: .hub(.repeatPage)
    default: .hub(.cursorStands)
    }
  }

  /// Asks the hub. What it does is done also where the device has died meanwhile, and its verdicts
  /// are kept.
  func ask(_ request: HubRequest) async throws(TransportError) -> HubResponse {
    counts.requests += 1
    let asking = Task { [hub] in await Self.result(of: request, at: hub) }
    let isPush = request.method == "POST"
    let result: Result<HubResponse, TransportError>
    if isPush {
      // A push that is on its way arrives.
      result = await asking.value
    } else {
      result = await withTaskCancellationHandler {
        await asking.value
      } onCancel: {
        asking.cancel()
      }
    }
    let response = try result.get()
    if isPush { keepVerdicts(request, response) }
    return response
  }

  private static func result(
    of request: HubRequest, at hub: MemoryHub
  ) async -> Result<HubResponse, TransportError> {
    do throws(TransportError) { return .success(try await hub.send(request)) } catch {
      return .failure(error)
    }
  }

  /// The network delivers a copy, and nobody reads the answer.
  func repeatLater(_ request: HubRequest, after delay: Duration) {
    Task { [self] in
      try await Task.sleep(for: delay)
      _ = try await ask(request)
      note("a late copy arrived")
    }
  }

  private func keepVerdicts(_ request: HubRequest, _ response: HubResponse) {
    guard response.status == 200, let body = request.body, let account = account(of: request) else {
      return
    }
    do {
      let push = try PushRequest(decoding: body, as: .cbor)
      let answer = try PushAnswer(decoding: response.body, as: .cbor)
      for (mutation, result) in zip(push.mutations, answer.results) {
        guard result.status == .applied || result.status == .duplicate, let version = result.version
        else { continue }
        violate(
          ledger.apply(mutation.mutation, as: version, in: account) { origin in
            switch origin {
            case .account(let number): number == account
            case .guest(let canary): mayBe(canary, of: account)
            }
          })
      }
      look(atHubSpaceOf: account)
    } catch {
      if !plan.mayLie { violate([Violation(.failing, "a push cannot be read: \(error)")]) }
    }
  }

  /// The account that a request asserts.
  func account(of request: HubRequest) -> Int? {
    guard let header = request.headers.first(where: { $0.name == HubHeader.account }),
      let bytes = PercentEncoding.decode(header.value)
    else { return nil }
    return people.first { Array($0.id.utf8) == bytes }?.number
  }

  /// Whether a request has only what belongs to the account that it names and whose token it carries.
  func inspect(_ request: HubRequest, of device: Device) {
    let place = "a request of device \(device.number)"
    var found = CanarySet()
    if let body = request.body { found.formUnion(machine.canaries(in: body)) }
    found.formUnion(machine.canaries(in: request.target.utf8))
    for header in request.headers { found.formUnion(machine.canaries(in: header.value.utf8)) }
    let account = account(of: request)
    if let account {
      violate(isolation(found, account: account, place: "\(place) for account \(account)"))
    } else {
      violate(Checks.isolation(found: found, allowed: CanarySet(), place: place))
    }
    guard request.method == "POST", let body = request.body else { return }
    do {
      let push = try PushRequest(decoding: body, as: .cbor)
      violate(
        Checks.refusing(
          refused: Set(push.mutations.map(\.mutation).filter(ledger.isRefused)),
          found: push.mutations.map(\.mutation), place: place))
    } catch { violate([Violation(.failing, "a push cannot be read: \(error)")]) }
  }
}
