internal import Glibc
package import NetwatchEventLoop

/// The file format of a recording of notifications: a header followed by records. Numbers are little-endian.
///
/// | bytes | header | | bytes | record |
/// |---|---|---|---|---|
/// | 0–7 | `netwatch` in ASCII | | 0–3 | kind: 1 datagram, 2 notifications were lost, 3 initial state |
/// | 8–11 | version: 2 | | 4–7 | length of the data after the 24 bytes of the record header |
/// | 12–15 | 0 | | 8–15 | nanoseconds of `CLOCK_BOOTTIME` |
/// | | | | 16–23 | nanoseconds of `CLOCK_REALTIME` since 1970, signed |
package enum NetlinkRecording {
    /// The version of the format that is written. A reader must reject newer versions. Version 1 has no initial state.
    package static let version: UInt32 = 2
    /// The oldest version that can be read.
    static let oldestVersion: UInt32 = 1
    /// The first version with the initial state.
    static let initialStateVersion: UInt32 = 2

    static let magic = Array("netwatch".utf8)
    static let headerSize = 16
    static let recordHeaderSize = 24

    /// The content of a record.
    package enum Content: Hashable, Sendable {
        /// A datagram with notifications.
        case datagram([UInt8])
        /// The kernel dropped notifications.
        case overrun
        /// A datagram with interfaces or addresses that existed when the recording began: a reply of the kernel to
        /// `RTM_GETLINK` or `RTM_GETADDR`. These records come first.
        case initialState([UInt8])
    }

    /// A received datagram, or the loss of datagrams, with the time of its arrival.
    package struct Record: Hashable, Sendable {
        package var content: Content
        /// The time of arrival in nanoseconds of `CLOCK_BOOTTIME`, which is never set.
        package var monotonic: UInt64
        /// The time of arrival in nanoseconds of `CLOCK_REALTIME` since 1970.
        package var wall: Int64

        package init(_ content: Content, monotonic: UInt64, wall: Int64) {
            self.content = content
            self.monotonic = monotonic
            self.wall = wall
        }

        /// Creates a record with the current time.
        package init(now content: Content) {
            self.init(
                content,
                monotonic: UInt64(clamping: nanoseconds(CLOCK_BOOTTIME)),
                wall: nanoseconds(CLOCK_REALTIME)
            )
        }
    }

    /// The reason why a file cannot be read. `offset` is the position of the faulty record in bytes.
    package enum Failure: Error, Hashable, Sendable {
        case unreadable(SystemError)
        /// The file is a directory, a pipe or a device, which cannot be read twice.
        case notAFile
        /// The file does not begin with the header of a recording.
        case notARecording
        /// The version is not supported by this program.
        case unknownVersion(UInt32)
        /// The record has a kind that does not exist in this version.
        case unknownKind(UInt32, offset: Int)
        /// The record is longer than any datagram, or it reports a loss and is not empty.
        case badLength(UInt32, offset: Int)
        /// The file ends inside the record that begins at this offset.
        case truncated(offset: Int)
    }
}

extension NetlinkRecording.Failure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreadable(let error): errnoDescription(error.errno)
        case .notAFile: "not a regular file"
        case .notARecording: "not a recording: `netwatch` is missing at offset 0"
        case .unknownVersion(let version):
            "unsupported version \(version) at offset \(NetlinkRecording.magic.count); "
                + "this program reads versions \(NetlinkRecording.oldestVersion) to \(NetlinkRecording.version)"
        case .unknownKind(let kind, let offset):
            "unknown record kind \(kind) at offset \(offset); the kinds are 1 to 3, in version 1 only 1 and 2"
        case .badLength(let length, let offset):
            "invalid length \(length) of the record at offset \(offset); accepted: up to "
                + "\(DatagramBuffer.datagramSize) bytes for a datagram, and 0 for a record of lost notifications"
        case .truncated(let offset): "truncated: the header or record at offset \(offset) is incomplete"
        }
    }
}

/// Returns the time of a clock in nanoseconds, which fits into 64 bits until the year 2262.
private func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
