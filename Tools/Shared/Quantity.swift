/// Numbers as people read them. The same on every machine: no locale decides.
public enum Quantity {
  /// A count with commas between groups of three digits: `13,000`.
  public static func count(_ number: Int) -> String {
    var digits = String(number.magnitude)
    var groups: [String] = []
    while digits.count > 3 {
      groups.append(String(digits.suffix(3)))
      digits.removeLast(3)
    }
    groups.append(digits)
    return (number < 0 ? "-" : "") + groups.reversed().joined(separator: ",")
  }

  /// A number of bytes in units of 1024, with one decimal from KiB on: `1.5 MiB`.
  public static func bytes(_ number: Int) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    var value = Double(number)
    var unit = 0
    // 1023.95 would be printed as 1024.0 of its unit.
    while abs(value) >= (unit == 0 ? 1024 : 1023.95), unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    if unit == 0 { return number == 1 ? "1 byte" : "\(number) bytes" }
    return "\(decimal(value, places: 1)) \(units[unit])"
  }

  /// A length of time with about three digits: `0.42 ms`, `1.25 s`, `3 min 05 s`, `2 h 07 min`.
  public static func duration(_ duration: Duration) -> String {
    let seconds = seconds(of: duration)
    switch seconds {
    case ..<0.9995: return decimal(seconds * 1000, places: seconds < 0.1 ? 2 : 0) + " ms"
    case ..<59.995: return decimal(seconds, places: 2) + " s"
    default: break
    }
    let whole = Int(seconds.rounded())
    return whole < 3600
      ? "\(whole / 60) min \(twoDigits(whole % 60)) s"
      : "\(whole / 3600) h \(twoDigits(whole % 3600 / 60)) min"
  }

  /// A count per second, rounded to a whole number: `31,250/s`; `-` if too little time passed to
  /// tell.
  public static func rate(_ number: Int, over duration: Duration) -> String {
    let seconds = seconds(of: duration)
    let rate = Double(number) / seconds
    guard seconds > 0, abs(rate) < 1e15 else { return "-" }
    return count(Int(rate.rounded())) + "/s"
  }

  static func seconds(of duration: Duration) -> Double {
    duration / .seconds(1)
  }

  private static func decimal(_ value: Double, places: Int) -> String {
    let scale = places == 2 ? 100 : places == 1 ? 10 : 1
    let scaled = Int((abs(value) * Double(scale)).rounded())
    let sign = value < 0 && scaled != 0 ? "-" : ""
    guard scale > 1 else { return sign + String(scaled) }
    let fraction = String(scaled % scale)
    let zeros = String(repeating: "0", count: places - fraction.count)
    return "\(sign)\(scaled / scale).\(zeros)\(fraction)"
  }

  private static func twoDigits(_ number: Int) -> String {
    (number < 10 ? "0" : "") + String(number)
  }
}
