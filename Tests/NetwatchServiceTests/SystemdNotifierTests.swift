internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import NetwatchTestSupport
internal import Testing

@Suite struct SystemdNotifierTests {
    @Test func `states are sent to a path in one datagram`() throws {
        let directory = try ScratchDirectory()
        let path = directory.file("notify")
        let manager = try NotifySocket(path)
        let notifier = SystemdNotifier(address: path)
        #expect(notifier.notify(.ready, .status("3 requests waiting")) == nil)
        #expect(try manager.receive() == "READY=1\nSTATUS=3 requests waiting")
        #expect(notifier.notify(.stopping) == nil)
        #expect(try manager.receive() == "STOPPING=1")
    }

    @Test func `the watchdog's interval applies to this process only`() {
        let interval = ["WATCHDOG_USEC": "60000000"]
        #expect(SystemdNotifier.watchdogInterval(interval) == .seconds(60))
        let own = interval.merging(["WATCHDOG_PID": "\(getpid())"]) { $1 }
        #expect(SystemdNotifier.watchdogInterval(own) == .seconds(60))
        let other = interval.merging(["WATCHDOG_PID": "1"]) { $1 }
        #expect(SystemdNotifier.watchdogInterval(other) == nil)
        for text in ["0", "-1", "x", ""] {
            #expect(SystemdNotifier.watchdogInterval(["WATCHDOG_USEC": text]) == nil)
        }
    }

    @Test func `states are sent to an abstract name`() throws {
        let name = "netwatch-test-\(getpid())"
        let manager = try NotifySocket("\0\(name)")
        #expect(SystemdNotifier(address: "@\(name)").notify(.ready) == nil)
        #expect(try manager.receive() == "READY=1")
    }

    @Test func `a status cannot contain another assignment`() throws {
        let directory = try ScratchDirectory()
        let manager = try NotifySocket(directory.file("notify"))
        let notifier = SystemdNotifier(address: directory.file("notify"))
        #expect(notifier.notify(.status("a\nREADY=1\r\nb\u{0}\u{85}c")) == nil)
        #expect(try manager.receive() == #"STATUS=a\nREADY=1\r\nb\u{0}\u{85}c"#)
    }

    @Test func `a long status is truncated between characters`() throws {
        let directory = try ScratchDirectory()
        let manager = try NotifySocket(directory.file("notify"))
        let notifier = SystemdNotifier(address: directory.file("notify"))
        #expect(notifier.notify(.ready, .status(String(repeating: "€", count: 5000))) == nil)
        #expect(try manager.receive() == "READY=1\nSTATUS=" + String(repeating: "€", count: 341))
    }

    @Test func `without a service manager, a notification is no error`() {
        #expect(SystemdNotifier(address: nil).notify(.ready) == nil)
        #expect(SystemdNotifier(address: "").notify(.ready) == nil)
    }

    @Test(arguments: [
        ("/nowhere/notify", ENOENT),
        ("/tmp", ECONNREFUSED),
        ("relative", EAFNOSUPPORT),
        ("vsock:2:1234", EAFNOSUPPORT),
        ("/" + String(repeating: "a", count: 107), EAFNOSUPPORT),
        ("@" + String(repeating: "a", count: 108), EAFNOSUPPORT),
        ("@", EAFNOSUPPORT),
    ])
    func `an unusable address is reported`(_ address: String, _ errno: CInt) {
        let error = SystemdNotifier(address: address).notify(.ready)
        #expect(error == SystemError(call: "sendto \(address)", errno: errno))
    }

    @Test func `a manager that does not read is reported without blocking`() throws {
        let directory = try ScratchDirectory()
        let manager = try NotifySocket(directory.file("notify"))
        let notifier = SystemdNotifier(address: directory.file("notify"))
        // A datagram socket's receive queue holds at most net.unix.max_dgram_qlen datagrams.
        let errors = (0..<100_000).lazy.compactMap { _ in notifier.notify(.ready) }
        #expect(errors.first?.errno == EAGAIN)
        #expect(try manager.receive() == "READY=1")
    }
}
