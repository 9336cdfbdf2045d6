internal import Glibc
package import NetwatchEventLoop

/// The file that a recording of notifications is: a header, then one record after another. Numbers are
/// little-endian.
///
/// | bytes | header | | bytes | record |
/// |---|---|---|---|---|
/// | 0–7 | `netwatch` in ASCII | | 0–3 | kind: 1 datagram, 2 notifications were lost |
/// | 8–11 | version: 1 | | 4–7 | length of what follows the record's 24 bytes |
/// | 12–15 | 0 | | 8–15 | nanoseconds of `CLOCK_BOOTTIME` |
/// | | | | 16–23 | nanoseconds of `CLOCK_REALTIME` since 1970, signed |
package enum NetlinkRecording {
    /// The version that is written, and the newest that is read. A reader may not guess at a newer one.
    package static let version: UInt32 = 1

    static let magic = Array("netwatch".utf8)
    static let headerSize = 16
    static let recordHeaderSize = 24

    /// One thing that was received, and when.
    package struct Record: Hashable, Sendable {
        package var received: NotificationSocket.Received
        /// When, in nanoseconds of `CLOCK_BOOTTIME`, which never steps.
        package var monotonic: UInt64
        /// When, in nanoseconds of `CLOCK_REALTIME` since 1970.
        package var wall: Int64

        package init(_ received: NotificationSocket.Received, monotonic: UInt64, wall: Int64) {
            self.received = received
            self.monotonic = monotonic
            self.wall = wall
        }

        /// A record of what was received just now.
        package init(now received: NotificationSocket.Received) {
            self.init(
                received,
                monotonic: UInt64(clamping: nanoseconds(CLOCK_BOOTTIME)),
                wall: nanoseconds(CLOCK_REALTIME)
            )
        }
    }

    /// Why a file is not read, each with the offset of the byte it is about.
    package enum Failure: Error, Hashable, Sendable {
        case unreadable(SystemError)
        /// It is a directory, a pipe, a device: nothing that can be read twice.
        case notAFile
        /// It does not begin like a recording.
        case notARecording
        /// A version that this program does not know.
        case unknownVersion(UInt32)
        /// A record of a kind that its version does not have.
        case unknownKind(UInt32, offset: Int)
        /// A record that says it is longer than any notification, or one of a loss that is not empty.
        case badLength(UInt32, offset: Int)
        /// The file ends inside the record that begins at this offset.
        case truncated(offset: Int)
    }
}

extension NetlinkRecording.Failure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreadable(let error): errnoDescription(error.errno)
        case .notAFile: "it is not a regular file"
        case .notARecording: "it is not a recording: `netwatch` is missing at offset 0"
        case .unknownVersion(let version):
            "it has version \(version) at offset \(NetlinkRecording.magic.count); "
                + "this netwatch reads version \(NetlinkRecording.version)"
        case .unknownKind(let kind, let offset): "it has a record of unknown kind \(kind) at offset \(offset)"
        case .badLength(let length, let offset):
            "it has a record at offset \(offset) whose length \(length) cannot be"
        case .truncated(let offset): "it is truncated, inside what begins at offset \(offset)"
        }
    }
}

/// Nanoseconds of a clock; 64 bits last until the year 2262.
private func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
