internal import Glibc
internal import NetwatchEventLoop
internal import NetworkReachability
internal import Testing

@testable internal import ClientCore
@testable internal import NetwatchTransport

/// The reasons in failures to connect for which the kernel has no route.
@Suite struct RouteReasonTests {
    private func failure(_ errors: (address: String, call: String, errno: Int32)...) -> TransferFailure {
        let attempts = errors.map {
            ConnectionAttempt(
                address: IPAddress($0.address)!,
                error: SystemError(call: $0.call, errno: $0.errno)
            )
        }
        let message = attempts.map(\.description).joined(separator: "; ") + "; 1 more were not tried"
        var failure = TransferFailure(code: 7, phase: .connect, message: message)
        failure.connectionAttempts = attempts
        return failure
    }

    @Test func `a prohibit and a blackhole route have the words of the path monitor`() {
        let failure = failure(
            ("192.0.2.1", "connect", EACCES),
            ("192.0.2.2", "connect", EINVAL),
            ("192.0.2.3", "connect", ENETUNREACH),
            ("192.0.2.4", "socket", EACCES)
        )
        #expect(
            failure.explained(by: .notReachable(.noRoute)).message
                == "192.0.2.1: prohibited by a route or rule; 192.0.2.2: blackhole route; "
                + "192.0.2.3: Network is unreachable; 192.0.2.4: socket: Permission denied; 1 more were not tried"
        )
    }

    @Test func `without the kernel's verdict, the system's words remain`() {
        let failure = failure(("192.0.2.1", "connect", EACCES))
        #expect(failure.explained(by: .unknown(.noNetlink)) == failure)
        #expect(failure.message.hasPrefix("192.0.2.1: Permission denied"))
    }
}
