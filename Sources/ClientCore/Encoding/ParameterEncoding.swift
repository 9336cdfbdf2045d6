internal import Foundation
public import FoundationNetworking

/// The parameters of a request by name.
public typealias Parameters = [String: Any]

/// A way to encode parameters into a request, such as ``URLEncoding`` and ``JSONEncoding``.
@preconcurrency public protocol ParameterEncoding: Sendable {
    /// Encodes the parameters into the URL or the body of the request.
    ///
    /// - Parameters:
    ///   - urlRequest: The request.
    ///   - parameters: The parameters; `nil` returns the request unchanged.
    /// - Returns: The request with its parameters.
    /// - Throws: The error of `urlRequest`, ``AFError/parameterEncodingFailed(reason:)``, or any other error. The
    ///   request fails with this error.
    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest
}

extension URLRequest {
    /// Sets the body. Also sets `Content-Type`, unless the request already has this field.
    mutating func setBody(_ body: Data, contentType: String) {
        if value(forHTTPHeaderField: "Content-Type") == nil {
            setValue(contentType, forHTTPHeaderField: "Content-Type")
        }
        httpBody = body
    }
}

/// Checks that a format can represent a tree of parameters, and rebuilds the tree from types that Foundation can write
/// in this format.
///
/// Without this, `JSONSerialization` and `PropertyListSerialization` terminate the program for some values, write
/// invalid output for others, and overflow the stack for deep trees.
///
/// An `NSArray` or `NSDictionary` that contains itself still overflows the stack, because Foundation recurses in every
/// access to it.
struct ParameterTree {
    /// The maximum number of nested arrays and dictionaries. Foundation cannot read JSON or binary property lists with
    /// more.
    static let maximumDepth = 512

    /// Returns the value as a type that Foundation can write, or `nil` if the format cannot represent the value.
    let leaf: (ParameterValue) -> Any?
    /// Returns whether the format can represent a dictionary's key.
    let isKey: (String) -> Bool
    /// Returns the error for the value at a path.
    let failure: (_ path: [String], _ value: String) -> any Error

    private var path: [String] = []

    init(
        leaf: @escaping (ParameterValue) -> Any?,
        isKey: @escaping (String) -> Bool = { _ in true },
        failure: @escaping (_ path: [String], _ value: String) -> any Error
    ) {
        self.leaf = leaf
        self.isKey = isKey
        self.failure = failure
    }

    /// Returns the rebuilt tree.
    ///
    /// - Throws: The error that `failure` returns, if the format cannot represent a value or a key. Values of a
    ///   dictionary are checked in the order of their keys.
    mutating func rebuild(_ value: Any) throws -> Any {
        let parameter = ParameterValue(value)
        switch parameter {
        case .array(let array): return try nested { try $0.rebuild(array) }
        case .dictionary(let dictionary): return try nested { try $0.rebuild(dictionary) }
        default:
            guard let rebuilt = leaf(parameter) else { throw failure(path, Self.description(of: value)) }
            return rebuilt
        }
    }

    private mutating func rebuild(_ array: [Any]) throws -> [Any] {
        var rebuilt: [Any] = []
        rebuilt.reserveCapacity(array.count)
        for (index, element) in array.enumerated() {
            path.append(String(index))
            rebuilt.append(try rebuild(element))
            path.removeLast()
        }
        return rebuilt
    }

    private mutating func rebuild(_ dictionary: [AnyHashable: Any]) throws -> [String: Any] {
        var named: [String: Any] = [:]
        for (key, value) in dictionary { named[try name(key)] = value }
        // Sorted, so that parameters with several invalid values fail with the same error each time.
        for (name, value) in named.sorted(by: { $0.key < $1.key }) {
            path.append(name)
            named[name] = try rebuild(value)
            path.removeLast()
        }
        return named
    }

    private func name(_ key: AnyHashable) throws -> String {
        guard let name = key.base as? String else {
            throw failure(path, "the key \(Self.description(of: key.base)) of type \(type(of: key.base))")
        }
        guard isKey(name) else { throw failure(path, "the key \(Self.description(of: name))") }
        return name
    }

    private mutating func nested<Result>(_ body: (inout Self) throws -> Result) throws -> Result {
        guard path.count < Self.maximumDepth else {
            let beginning = path.prefix(4) + ["…"]
            throw failure(Array(beginning), "an array or dictionary \(Self.maximumDepth) levels deep")
        }
        return try body(&self)
    }

    /// Returns a description of the value for an error message, with at most about 100 characters.
    static func description(of value: Any) -> String {
        let text = value is String ? String(reflecting: value) : ParameterValue.description(of: value)
        return text.count <= 100 ? text : text.prefix(100) + "…"
    }
}

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
