internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport

/// A body source to which a test adds pieces one by one.
final class SteppedSource: TransferBodySource {
    enum Piece {
        case bytes([UInt8])
        case end
        case failed(SystemError)
    }

    private struct State {
        var pieces: [Piece]
        var next = 0
        var wake: (@Sendable () -> Void)?
        var pauses = 0
        var rewinds = 0
        var cancellations = 0
    }

    let length: Int64?
    let isRewindable: Bool
    private let state: Lock<State>

    init(length: Int64?, _ pieces: [Piece] = [], isRewindable: Bool = true) {
        self.length = length
        self.isRewindable = isRewindable
        state = Lock(State(pieces: pieces))
    }

    var rewinds: Int { state.withLock { $0.rewinds } }
    var cancellations: Int { state.withLock { $0.cancellations } }

    /// Adds pieces. May be called on any thread.
    func add(_ pieces: Piece...) {
        let wake = state.withLock { state in
            state.pieces += pieces
            defer { state.wake = nil }
            return state.wake
        }
        wake?()
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> TransferBodyStep {
        state.withLock { state in
            guard state.next < state.pieces.count else { return .pending }
            switch state.pieces[state.next] {
            case .end: return .end
            case .failed(let error): return .failed(error)
            case .bytes(let bytes):
                precondition(bytes.count <= buffer.count || buffer.count == 1, "the piece is too large")
                if buffer.count >= bytes.count { state.next += 1 }
                buffer.copyBytes(from: bytes.prefix(buffer.count))
                return .bytes(min(bytes.count, buffer.count))
            }
        }
    }

    func rewind() -> Bool {
        state.withLock { state in
            state.rewinds += 1
            if isRewindable { state.next = 0 }
            return isRewindable
        }
    }

    func whenReady(_ wake: @escaping @Sendable () -> Void) {
        let isReady = state.withLock { state in
            state.pauses += 1
            if state.next == state.pieces.count { state.wake = wake }
            return state.next < state.pieces.count
        }
        if isReady { wake() }
    }

    func cancel() {
        state.withLock { $0.cancellations += 1 }
    }
}
