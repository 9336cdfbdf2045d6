internal import Foundation
internal import NetwatchTestSupport

extension ScratchDirectory {
    /// Writes or replaces a text file and returns its URL.
    @discardableResult
    func makeFile(_ name: String, _ content: String = "content") throws -> URL {
        URL(fileURLWithPath: try write(Array(content.utf8), to: name))
    }
}
