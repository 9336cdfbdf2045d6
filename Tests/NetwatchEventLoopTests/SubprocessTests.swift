internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@Suite struct SubprocessTests {
    @Test(.timeLimit(.minutes(5))) func `a program inherits no open file of the tests`() async throws {
        let directory = try ScratchDirectory()
        // Without O_CLOEXEC, as Foundation opens the files that it writes.
        let file = open(directory.file("open"), O_CREAT | O_WRONLY, 0o600)
        defer { close(file) }
        let links = try Subprocess("/usr/bin/find", ["/proc/self/fd", "-printf", "%l\n"])
        let targets = try await links.outcome().output
        #expect(targets.contains("/dev/null"))
        #expect(targets.filter { $0.hasPrefix(directory.path) } == [])
    }
}
