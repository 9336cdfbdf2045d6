internal import Glibc

/// The `stat(2)` properties of some files. If they differ from earlier ones, a file was replaced or written.
///
/// The resolver reads them at each query, which takes less than 5 µs for four files. So a process without a monitor
/// needs no thread that watches the files.
package struct FileFingerprints: Equatable, Sendable {
    /// The files that configure name resolution: those of `resolv.conf(5)`, `hosts(5)`, `nsswitch.conf(5)` and
    /// `gai.conf(5)`.
    package static let resolverPaths = [
        "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf",
    ]

    private struct Fingerprint: Equatable {
        let device: UInt
        let inode: UInt
        let size: Int
        let seconds: Int
        let nanoseconds: Int
    }

    private let fingerprints: [Fingerprint?]

    init(of paths: [String]) {
        fingerprints = paths.map { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            return Fingerprint(
                device: UInt(status.st_dev),
                inode: UInt(status.st_ino),
                size: Int(status.st_size),
                seconds: status.st_mtim.tv_sec,
                nanoseconds: status.st_mtim.tv_nsec
            )
        }
    }
}
