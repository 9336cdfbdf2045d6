internal import Foundation

/// The kind of a value in ``Parameters``, independent of its Swift or Foundation type.
///
/// On Linux, `NSNumber(value: 1) as? Bool` is `true`. Encodings therefore use this type instead of casting values
/// themselves.
enum ParameterValue {
    /// `NSNull`, and `nil` of any type.
    case null
    case text(String)
    case bool(Bool)
    case integer(NSNumber)
    case real(any BinaryFloatingPoint)
    case decimal(NSDecimalNumber)
    case array([Any])
    case dictionary([AnyHashable: Any])
    case set(Set<AnyHashable>)
    /// A date, data, or a value of any other type.
    case other(Any)

    init(_ value: Any) {
        switch value {
        case let optional as any OptionalValue: self = optional.wrapped.map(Self.init) ?? .null
        case let text as String: self = .text(text)
        // Collections are checked before classes, because casting a collection to a class makes a deep copy.
        case let array as [Any]: self = .array(array)
        case let dictionary as [AnyHashable: Any]: self = .dictionary(dictionary)
        case let set as Set<AnyHashable>: self = .set(set)
        case is NSNull: self = .null
        case let text as any StringProtocol: self = .text(String(text))
        // A `Decimal` is bridged to `NSDecimalNumber`.
        case let number as NSDecimalNumber: self = .decimal(number)
        case let number as NSNumber: self = Self.number(number)
        // Types that are not bridged to `NSNumber`, such as `CGFloat`.
        case let real as any BinaryFloatingPoint: self = .real(real)
        default: self = .other(value)
        }
    }

    /// Distinguishes numbers by their type encoding (`NSValue.objCType`). On Linux only a Boolean is encoded as `c`.
    private static func number(_ number: NSNumber) -> ParameterValue {
        switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "c"): .bool(number.boolValue)
        case UInt8(ascii: "f"): .real(number.floatValue)
        case UInt8(ascii: "d"): .real(number.doubleValue)
        default: .integer(number)
        }
    }
}

extension ParameterValue {
    /// The times that dates can have: the years 1 to 9999, in seconds since 1970. For other years, Foundation writes
    /// invalid dates into property lists. For NaN, the description of a `Date` terminates the program.
    static let years = -62_135_596_800.0..<253_402_300_800.0

    /// Returns the description of a value of any type, including a `Date` outside of ``years``.
    static func description(of value: Any) -> String {
        guard let date = value as? Date, !years.contains(date.timeIntervalSince1970) else {
            return "\(value)"
        }
        return "\(date.timeIntervalSince1970) s after 1970"
    }
}

/// Detects whether an `Any` contains an optional: only `Optional` conforms.
private protocol OptionalValue {
    var wrapped: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var wrapped: Any? { map { $0 } }
}
