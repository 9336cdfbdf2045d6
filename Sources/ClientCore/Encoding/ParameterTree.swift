internal import Foundation

/// Checks a tree of parameters for a format, and rebuilds it from types that the format's writer supports.
///
/// `JSONSerialization` and `PropertyListSerialization` terminate the program for some values, write unreadable output
/// for others, and recurse until the stack overflows. The rebuilt tree is safe for them. The exception is an
/// `NSArray` or `NSDictionary` that contains itself: the cast to a Swift collection, and every accessor, recurses
/// inside Foundation.
struct ParameterTree {
    /// The maximum nesting of arrays and dictionaries. Foundation does not read JSON or binary property lists that
    /// are nested more deeply.
    static let maximumDepth = 512

    /// Returns the value in a form that the writer accepts, or `nil` if the format cannot represent it.
    let leaf: (ParameterValue) -> Any?
    /// Returns whether the format can represent the name.
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

    /// - Throws: The error from `failure` for the first value, in the order of names, that cannot be represented.
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
        // Sorted, so that the same one of several invalid values is reported each time.
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

    /// Returns a text of at most 100 characters that identifies the value.
    static func description(of value: Any) -> String {
        let text = value is String ? String(reflecting: value) : ParameterValue.description(of: value)
        return text.count <= 100 ? text : text.prefix(100) + "…"
    }
}
