internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// The id of the boot, read from files that stand for those of `/proc`.
@Suite struct BootIDTests {
    private static let kernel = "2f9e6cb4-9d5a-4f0e-8a35-0b7c1d9e4a11\n"
    private static let digits = "2f9e6cb49d5a4f0e8a350b7c1d9e4a11"
    private let proc: ScratchDirectory

    init() throws { proc = try ScratchDirectory() }

    private func write(_ text: String, to path: String) throws {
        let file = URL(filePath: "\(proc.path)/\(path)")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try Data(text.utf8).write(to: file)
    }

    private func read(_ variable: String? = nil) -> String? {
        BootID.read(proc: proc.path, given: variable)
    }

    @Test func `the service manager's id is used if the kernel's is hidden, and both are equal`() throws {
        #expect(read() == nil)
        #expect(read("") == nil && read("unknown") == nil)
        #expect(read(Self.digits) == Self.digits)
        try write(Self.kernel, to: "sys/kernel/random/boot_id")
        #expect(read() == Self.digits)
        #expect(read("ffffffffffffffffffffffffffffffff") == Self.digits)
    }

    @Test func `a time namespace with another boot clock counts as another boot`() throws {
        try write(
            "monotonic           0         0\nboottime            0         0\n",
            to: "self/timens_offsets"
        )
        #expect(read(Self.digits) == Self.digits)
        try write(
            "monotonic           0         0\nboottime      2592000         0\n",
            to: "self/timens_offsets"
        )
        #expect(read(Self.digits) == "\(Self.digits) 2592000.0")
    }
}
