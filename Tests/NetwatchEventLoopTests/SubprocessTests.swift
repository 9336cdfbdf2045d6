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

    @Test(arguments: [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGSYS, SIGPIPE, SIGTERM])
    func `a signal that the test did not send is a crash`(signal: CInt) {
        #expect(Subprocess.isCrash(.signalled(signal), sent: [], errors: []))
        #expect(Subprocess.isCrash(.signalled(signal), sent: [SIGHUP, SIGKILL], errors: []))
        #expect(!Subprocess.isCrash(.signalled(signal), sent: [SIGHUP, signal], errors: []))
        #expect(!Subprocess.isCrash(.exited(1), sent: [], errors: ["netwatch: error: \(signal)"]))
    }

    @Test func `SIGKILL is not a crash, because processes kill themselves with it`() {
        #expect(!Subprocess.isCrash(.signalled(SIGKILL), sent: [], errors: []))
    }

    @Test func `a report is a crash, even if the test then killed the program`() {
        // Not arguments of the test: the scripts would find them in its output, and assume a crash.
        let reports = [
            "Swift/ContiguousArrayBuffer.swift:692: Fatal error: Index out of range",
            "*** Signal 4: Backtracing from 0x7f2a9c0d1e3b... done ***",
            "WARNING: ThreadSanitizer: data race (pid=7)", "==7==ERROR: LeakSanitizer: detected memory leaks",
        ]
        for line in reports {
            let isFound = [Subprocess.Ending.signalled(SIGKILL), .exited(0)].allSatisfy {
                Subprocess.isCrash($0, sent: [SIGKILL], errors: ["ready", line])
            }
            #expect(isFound)
        }
    }

    @Test(arguments: [23, 66, 132, 139])
    func `the status of a sanitizer or of a shell whose program crashed is a crash`(status: CInt) {
        #expect(Subprocess.isCrash(.exited(status), sent: [], errors: []))
    }
}
