internal import Foundation
internal import Synchronization

/// The objects that must be released by the end of a seed, and the files that the program must delete.
final class LeakCheck: Sendable {
    private struct Witness: @unchecked Sendable {
        // The object is only compared with `nil`, hence `@unchecked`.
        let name: String
        weak var object: AnyObject?
    }

    private let witnesses = Mutex<[Witness]>([])
    private let files = Mutex<Set<URL>>([])

    /// Watches an object, and those of its parts that must be released with it.
    func watch(_ name: String, _ object: AnyObject) {
        let found =
            [Witness(name: name, object: object)]
            + Self.parts(of: object).map { part in
                Witness(name: "\(part.name) of \(name)", object: part.object)
            }
        witnesses.withLock { $0 += found }
    }

    /// Returns the watched parts. They are found by reflection, because other modules cannot name these properties.
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

    /// Records the file that a download has left to its program, or the partial file in its resume data.
    func note(file: URL?, resumeData: Data?) {
        let record = resumeData.flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] }
        let part = (record?["partialFile"] as? String).map { URL(fileURLWithPath: $0) }
        files.withLock { $0.formUnion([file, part].compactMap { $0 }) }
    }

    func removeFiles() {
        for file in files.withLock({ $0 }) { try? FileManager.default.removeItem(at: file) }
    }
}
