/// Tells which connection keeps libcurl from returning, from what several looks within one turn have shown.
///
/// A turn may be long for better reasons: thousands of handshakes at once, a callback that waits, a machine that is
/// suspended or has other things to do. Therefore time is the processor's, and the connection to blame is the one that
/// was read from all the time. An honest one is read a hundred times at most in a turn, which is a matter of
/// milliseconds.
struct LongTurn {
    /// What is seen of a turn from beside it.
    struct Look {
        /// Which turn it is.
        let turn: UInt64
        /// What the thread has used of the processor since it began.
        let processorTime: Duration
        /// How many bytes libcurl has taken from each connection since that was made.
        let taken: [WatchedSocket: UInt64]
    }

    /// How often in a row bytes have to be taken from a connection between two looks.
    static let patience = 3
    /// How much of the processor must have been used since the first look: less than half of the time that three
    /// intervals take, for a machine that is busy.
    static let processorTime = Duration.milliseconds(500)

    /// How much has to be taken to count, in bytes: a record of TLS. Less may only seem to be taken, since what has come
    /// and what waits are not counted at the same time.
    static let leastBytes: UInt64 = 16 * 1024

    private var first: Look?
    private var last: [WatchedSocket: UInt64] = [:]
    /// The connections that were read from between any two looks so far, and how much in all.
    private var read: [WatchedSocket: UInt64] = [:]
    private var intervals = 0

    /// Returns the connection to cut, and for how long it has held the processor. One at a time: if others do the same,
    /// the turn goes on, and there will be another look.
    mutating func judge(_ look: Look) -> (socket: WatchedSocket, held: Duration)? {
        guard let first, first.turn == look.turn else {
            self = LongTurn()
            (first, last) = (look, look.taken)
            return nil
        }
        compare(look)
        let held = look.processorTime - first.processorTime
        guard intervals >= Self.patience, held >= Self.processorTime,
            let busiest = read.max(by: { $0.value < $1.value })
        else {
            return nil
        }
        read[busiest.key] = nil
        return (busiest.key, held)
    }

    private mutating func compare(_ look: Look) {
        let known = intervals == 0 ? last.mapValues { _ in 0 } : read
        read = known.reduce(into: [:]) { read, entry in
            guard let before = last[entry.key], let now = look.taken[entry.key],
                now >= before + Self.leastBytes
            else { return }
            read[entry.key] = entry.value + now - before
        }
        last = look.taken
        intervals += 1
    }
}
