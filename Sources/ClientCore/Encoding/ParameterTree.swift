internal import Foundation

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
