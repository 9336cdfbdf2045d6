internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// Accepts connections on an event loop of its own and hands each over once.
///
/// NIO could accept them too, but without close-on-exec, which cannot be set afterwards because NIO does
/// not tell the descriptor; a program started by anyone in the process would inherit the connection.
final class ControlListener: Sendable {
    /// Takes over a connected descriptor, non-blocking and close-on-exec.
    typealias Handler = @Sendable (CInt, PeerCredentials) -> Void

    private struct State: ~Copyable {
        /// `nil` once stopped.
        var socket: ControlSocket?
        var registration: EventLoop.Registration?
    }

    private let loop: EventLoop
    private let descriptor: CInt
    private let state: Mutex<State>
    private let onConnection: Handler
    private let onFailure: @Sendable (SystemError) -> Void

    /// How long accepting pauses when descriptors or memory ran out. The waiting connection keeps the
    /// listener readable, so going on at once would only burn the processor.
    private static let pause = Duration.milliseconds(100)

    /// Starts accepting. Both closures run on the listener's thread.
    init(
        socket: consuming ControlSocket,
        onConnection: @escaping Handler,
        onFailure: @escaping @Sendable (SystemError) -> Void
    ) throws(SystemError) {
        loop = try EventLoop(label: "nw-control")
        descriptor = socket.listener.rawValue
        state = Mutex(State(socket: socket, registration: nil))
        self.onConnection = onConnection
        self.onFailure = onFailure
        try watch()
    }

    /// Stops accepting, removes the path and gives the lock back. Connections that nobody accepted yet are
    /// reset.
    func stop() {
        state.withLock { state in
            unwatch(&state)
            state.socket = nil
        }
    }

    private func watch() throws(SystemError) {
        try state.withLock { state throws(SystemError) in
            guard state.socket != nil, state.registration == nil else { return }
            state.registration = try loop.register(descriptor, for: .read) { [weak self] _ in self?.accept() }
        }
    }

    private func unwatch(_ state: inout State) {
        if let registration = state.registration { loop.unregister(registration) }
        state.registration = nil
    }
}

// MARK: - On the listener's thread

extension ControlListener {
    /// Takes one connection; readiness is level-triggered, so the next comes with the next turn.
    private func accept() {
        do throws(SystemError) {
            guard let connection = try acceptOne() else { return }
            try handOver(connection)
        } catch {
            failed(error)
        }
    }

    /// Under the lock, so that ``stop()`` cannot close the descriptor and another open get its number.
    private func acceptOne() throws(SystemError) -> CInt? {
        try state.withLock { state throws(SystemError) in
            guard state.socket != nil else { return nil }
            let flags = CInt(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            return try systemCall("accept4") { accept4(descriptor, nil, nil, flags) }
        }
    }

    private func handOver(_ connection: CInt) throws(SystemError) {
        let peer: PeerCredentials
        do throws(SystemError) {
            peer = try PeerCredentials(ofSocket: connection)
        } catch {
            close(connection)
            throw error
        }
        onConnection(connection, peer)
    }

    private func failed(_ error: SystemError) {
        switch error.errno {
        case EAGAIN, ECONNABORTED:
            return
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            pause()
            onFailure(error)
        default:
            onFailure(error)
        }
    }

    private func pause() {
        state.withLock { unwatch(&$0) }
        loop.schedule(at: .now + Self.pause) { [weak self] in
            guard let self else { return }
            do throws(SystemError) { try watch() } catch { onFailure(error) }
        }
    }
}
