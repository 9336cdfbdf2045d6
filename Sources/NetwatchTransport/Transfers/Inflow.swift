internal import CNetwatchCurl

/// How much of a body comes at once.
///
/// Within one turn libcurl reads up to a hundred times, and decodes each time all that it has read. A fast server would so
/// fill megabytes before anybody could ask for a pause, and one that sends zeros as gzip has them gigabytes, while the
/// loop stands still.
struct Inflow {
    /// How much is received at once, in bytes, where a body may have to be decoded, which nothing stops before the end
    /// of what was read. More is faster, and what gzip can make of it is in memory three times at worst: received, told
    /// and on its way to whoever takes it.
    static let encodedReadSize = 7 * 1024
    /// How much may come of one such read: as much as gzip can do, 1032 bytes of each. Other codings can do a thousand
    /// times that, and only mean harm then.
    static let readLimit = encodedReadSize * 1032 + 64 * 1024
    /// How much may come in one turn before others get theirs.
    private static let turnLimit = 1 << 20

    /// What has to become of some bytes.
    enum Verdict {
        case take
        /// Another turn's.
        case hold
        case refuse
    }

    /// Whether it stands still until the next turn.
    var isHeld = false
    /// Whether nobody wants more of it in this turn.
    var isUnwanted = false
    private var turnBytes = 0
    private var readBytes = 0
    /// How many bytes had come over the wire, which is another number in each read.
    private var read: Int64 = -1

    /// - Parameter received: How many bytes have come over the wire, as libcurl counts them.
    mutating func judge(_ count: Int, received: Int64) -> Verdict {
        if received != read {
            // What comes of a read that was held is all kept by libcurl, and is not held again.
            read = received
            readBytes = 0
            if isUnwanted || turnBytes > Self.turnLimit { return .hold }
        }
        readBytes += count
        turnBytes += count
        return readBytes > Self.readLimit ? .refuse : .take
    }

    mutating func turnEnds() { (turnBytes, isUnwanted) = (0, false) }
}

extension Transfer {
    /// Whether more of the body may be taken now; if not, it is held until the next turn or refused.
    func mayTake(_ count: Int) -> Bool {
        switch inflow.judge(count, received: easy.offset(CURLINFO_SIZE_DOWNLOAD_T)) {
        case .take: return true
        case .hold:
            inflow.isHeld = true
            later { $0.flowOn() }
        case .refuse: stop = .bodyInflates
        }
        return false
    }
}
