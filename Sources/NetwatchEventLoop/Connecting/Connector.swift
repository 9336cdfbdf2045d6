internal import Glibc

/// A connector that connects to the first of several addresses that answers (RFC 8305, "Happy Eyeballs"). It tries the
/// next address after 250 ms, or immediately when an attempt fails.
///
/// It runs on its loop's thread. It has no timeout of its own, so the caller must call ``stop()`` after a timeout.
package actor Connector {
    /// An established connection.
    package struct Connection: Sendable {
        package let socket: TCPSocket
        package let address: IPAddress
    }

    package typealias Outcome = Result<Connection, ConnectionFailure>

    private struct Attempt {
        let address: IPAddress
        let socket: TCPSocket
        let registration: EventLoop.Registration
    }

    private nonisolated let loop: EventLoop
    private let port: UInt16
    private var race: ConnectionRace
    private var attempts: [Int: Attempt] = [:]
    private var timer: EventLoop.Timer?
    private var completion: (@Sendable (Outcome) -> Void)?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Creates a connector.
    ///
    /// - Parameters:
    ///   - loop: The loop on which to connect. Its network namespace is used.
    ///   - race: The addresses.
    ///   - port: The port, 1 to 65535.
    ///   - completion: Receives the outcome. Called once on the loop's thread, possibly before ``start()`` returns, but
    ///     not after ``stop()``.
    package init(
        loop: EventLoop,
        race: ConnectionRace,
        port: UInt16,
        completion: @escaping @Sendable (Outcome) -> Void
    ) {
        self.loop = loop
        self.race = race
        self.port = port
        self.completion = completion
    }

    package func start() { tryNext() }

    /// Closes the connecting sockets. Returns the results of the attempts so far.
    @discardableResult
    package func stop() -> ConnectionFailure {
        completion = nil
        timer.map(loop.cancel)
        timer = nil
        for number in attempts.keys { end(number) }
        return race.failure
    }

    private func tryNext() {
        timer.map(loop.cancel)
        timer = nil
        while true {
            switch race.next() {
            case .wait: return
            case .failed: return finish(.failure(race.failure))
            case .connect(let number, let candidate, let oldest):
                if let oldest { end(oldest) }
                if connect(number, candidate) { return scheduleNext() }
            }
        }
    }

    /// Begins an attempt to connect. Returns `false` if it has failed immediately.
    private func connect(_ number: Int, _ candidate: ConnectionCandidate) -> Bool {
        do throws(SystemError) {
            let socket = try TCPSocket.connecting(to: candidate, port: port, on: loop)
            let registration = try loop.register(socket.descriptor, for: .write) { _ in
                self.assumeIsolated { $0.attemptEnded(number) }
            }
            attempts[number] = Attempt(
                address: candidate.address,
                socket: socket,
                registration: registration
            )
            return true
        } catch {
            race.failed(number, error)
            return false
        }
    }

    private func scheduleNext() {
        guard race.hasNext else { return }
        timer = loop.schedule(at: .now + ConnectionRace.attemptDelay) {
            self.assumeIsolated { $0.tryNext() }
        }
    }

    private func attemptEnded(_ number: Int) {
        guard let attempt = end(number) else { return }
        let errno = attempt.socket.outcome
        guard errno == 0 else {
            race.failed(number, SystemError(call: "connect", errno: errno))
            return tryNext()
        }
        finish(.success(Connection(socket: attempt.socket, address: attempt.address)))
    }

    @discardableResult
    private func end(_ number: Int) -> Attempt? {
        guard let attempt = attempts.removeValue(forKey: number) else { return nil }
        loop.unregister(attempt.registration)
        return attempt
    }

    private func finish(_ outcome: Outcome) {
        let completion = completion
        stop()
        completion?(outcome)
    }
}

/// One attempt to connect to one address of a host.
public struct ConnectionAttempt: Hashable, Sendable, CustomStringConvertible {
    /// The address.
    public let address: IPAddress
    /// The failed system call and its `errno(3)`; `nil` if the server had not answered when the attempt ended.
    public let error: SystemError?

    /// Creates an attempt.
    ///
    /// - Parameters:
    ///   - address: The address.
    ///   - error: The reason why the attempt failed; `nil` if the server had not answered.
    public init(address: IPAddress, error: SystemError?) {
        self.address = address
        self.error = error
    }

    /// The address and the result, such as `192.0.2.1: Connection refused`.
    public var description: String {
        guard let error else { return "\(address): no answer" }
        return "\(address): \(error.call == "connect" ? errnoDescription(error.errno) : "\(error)")"
    }
}

/// The error of a host that could not be reached at any of its addresses.
package struct ConnectionFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The attempts, in the order in which they started.
    package let attempts: [ConnectionAttempt]
    /// The addresses that were not tried, because the time was over.
    package let untried: [IPAddress]

    /// The addresses with which the next connection to the host must begin, so that each address has its turn; empty if
    /// all addresses were tried.
    ///
    /// After the untried addresses come those that did not answer, because the last of them had little time.
    package var resumption: [IPAddress] {
        untried.isEmpty ? [] : untried + attempts.filter { $0.error == nil }.map(\.address)
    }

    /// The most informative error; `nil` if no attempt had an error. It is the first that exists of these:
    ///
    /// 1. A local shortage (``SystemError/shortages``). It may have prevented the attempt to an address that works.
    /// 2. The first error that does not mean a missing route.
    /// 3. The first error of all.
    package var verdict: SystemError? {
        let errors = attempts.compactMap(\.error)
        return errors.first { SystemError.shortages.contains($0.errno) }
            ?? errors.first { !Self.noRoute.contains($0.errno) } ?? errors.first
    }

    /// All attempts in one line.
    package var description: String {
        let rest = untried.isEmpty ? [] : ["\(untried.count) more were not tried"]
        return (attempts.map(\.description) + rest).joined(separator: "; ")
    }

    /// The `errno(3)` values of a machine that has no route to the address or does not support its family.
    private static let noRoute = [ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, EAFNOSUPPORT]
}

extension SystemError {
    /// The `errno(3)` values for a lack of descriptors, memory or threads.
    package static let shortages: Set<Int32> = [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN]
}
