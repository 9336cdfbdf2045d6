internal import Foundation
internal import NetwatchEventLoop

/// The objects that must be released by the end of a seed, and the downloaded files, which the program must delete.
final class LeakCheck: Sendable {
    private struct Witness: @unchecked Sendable {
        // `@unchecked` is safe, because the object is only compared with `nil`.
        let name: String
        weak var object: AnyObject?
    }

    private let witnesses = Lock<[Witness]>([])
    private let files = Lock<Set<URL>>([])

    /// Watches an object, and its parts that must be released together with it.
    func watch(_ name: String, _ object: AnyObject) {
        let found =
            [Witness(name: name, object: object)]
            + Self.parts(of: object).map { part in
                Witness(name: "\(part.name) of \(name)", object: part.object)
            }
        witnesses.withLock { $0 += found }
    }

    /// Returns the properties `core` and `context` of an object, as far as it has them. They are found by reflection,
    /// because they are internal to another module.
    private static func parts(of object: AnyObject) -> [(name: String, object: AnyObject)] {
        var found: [(name: String, object: AnyObject)] = []
        var mirror: Mirror? = Mirror(reflecting: object)
        while let current = mirror {
            for child in current.children {
                guard let name = child.label, ["core", "context"].contains(name) else { continue }
                found.append((name, child.value as AnyObject))
            }
            mirror = current.superclassMirror
        }
        return found
    }

    var objects: [String] {
        witnesses.withLock { $0.filter { $0.object != nil }.map { "\($0.name) is left" } }
    }

    // MARK: Files

    /// Records a file that the program must delete: that of a finished download, or the partial file that the resume
    /// data names.
    func note(file: URL?, resumeData: Data?) {
        let record = resumeData.flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] }
        let part = (record?["partialFile"] as? String).map { URL(fileURLWithPath: $0) }
        files.withLock { $0.formUnion([file, part].compactMap { $0 }) }
    }

    func removeFiles() {
        for file in files.withLock({ $0 }) { try? FileManager.default.removeItem(at: file) }
    }
}
