import Foundation

extension EnvironmentPool {
  /// How many environments a process can have open at once, and what sets that.
  public struct Capacity: Sendable, Hashable, CustomStringConvertible {
    /// What sets it.
    public enum Limit: Sendable, Hashable {
      /// ``EnvironmentPool/Configuration/countMax``.
      case configuration
      /// The descriptors of the process (`RLIMIT_NOFILE`): three each, 256 left for others.
      case descriptors
      /// The address space: half of it, divided by the map's size at the beginning.
      case addressSpace
      /// The memory mappings of the process (`vm.max_map_count`): four each, 10,000 left for others.
      case mappings
    }

    /// How many.
    public let count: Int
    /// What sets it.
    public let limit: Limit

    /// One line with both.
    public var description: String { "\(count) environments, limited by \(limit)" }

    init(_ configuration: Configuration) {
      var limits: [(count: Int, limit: Limit)] = [(configuration.countMax, .configuration)]
      if let descriptors = Self.softLimit(of: Self.descriptorResource) {
        limits.append(((descriptors - 256) / 3, .descriptors))
      }
      // Some processors give a process 2^47 bytes; half of it is left for everything else.
      let space = min(Self.softLimit(of: Self.spaceResource) ?? 1 << 46, 1 << 46)
      let each = max(1, configuration.environment.mapSizeByteCount) + 3 << 20
      limits.append((space / 2 / each, .addressSpace))
      if let mappings = Self.mappingCountMax {
        limits.append(((mappings - 10_000) / 4, .mappings))
      }
      let least = limits.min { $0.count < $1.count } ?? (0, .configuration)
      count = max(0, least.count)
      limit = least.limit
    }

    /// - Returns: nil without a limit.
    private static func softLimit(of resource: Int32) -> Int? {
      var limits = rlimit()
      guard unsafe getrlimit(resource, &limits) == 0, limits.rlim_cur != rlim_t.max >> 1,
        limits.rlim_cur != rlim_t.max
      else { return nil }
      return Int(clamping: limits.rlim_cur)
    }

    // The constants are integers on some platforms and cases of an enumeration on others.
    #if canImport(Darwin)
      fileprivate static let descriptorResource = RLIMIT_NOFILE
      private static let spaceResource = RLIMIT_AS
    #else
      fileprivate static let descriptorResource = Int32(RLIMIT_NOFILE.rawValue)
      private static let spaceResource = Int32(RLIMIT_AS.rawValue)
    #endif

    private static var mappingCountMax: Int? {
      guard let text = try? String(contentsOfFile: "/proc/sys/vm/max_map_count", encoding: .utf8)
      else { return nil }
      return Int(text.trimmingCharacters(in: .whitespacesAndNewlines))
    }
  }

  /// Raises the process's limit of descriptors as far as the system allows.
  ///
  /// Call it before a large pool is made: many systems start a process with 1,024, room for 256
  /// environments. It holds for the whole process, and `select` cannot watch descriptors above 1,023.
  /// - Returns: the limit now.
  @discardableResult
  public static func raiseDescriptorLimit() -> Int {
    var limits = rlimit()
    guard unsafe getrlimit(Capacity.descriptorResource, &limits) == 0 else { return 0 }
    let before = limits.rlim_cur
    limits.rlim_cur = limits.rlim_max
    #if canImport(Darwin)
      limits.rlim_cur = min(limits.rlim_cur, rlim_t(OPEN_MAX))
    #endif
    if limits.rlim_cur > before, unsafe setrlimit(Capacity.descriptorResource, &limits) == 0 {
      return Int(clamping: limits.rlim_cur)
    }
    return Int(clamping: before)
  }
}
