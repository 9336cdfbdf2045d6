internal import CNetwatchCrypto
internal import Glibc
internal import NetwatchEventLoop

/// The memory of a key: separate pages, which core dumps leave out (`MADV_DONTDUMP`), and which the kernel does not
/// swap if `RLIMIT_MEMLOCK` permits. The bytes are read-only after ``init(_:_:)`` and are overwritten at the end.
final class SecretMemory: Sendable {
    /// The maximum number of bytes: 4096, one page on most machines. The kernel rounds up on others.
    static let capacity = 4096

    // Nothing writes to the memory after the initializer, and only `deinit` releases it.
    private nonisolated(unsafe) let start: UnsafeMutableRawPointer
    private let count: Int

    /// Reserves memory and fills it.
    ///
    /// - Parameters:
    ///   - count: The number of bytes, at most ``capacity``.
    ///   - fill: Writes the bytes, which are zero before.
    /// - Throws: ``SystemError`` of mmap(2), and errors of `fill`.
    init(
        _ count: Int,
        _ fill: (UnsafeMutableRawBufferPointer) throws(SystemError) -> Void
    ) throws(SystemError) {
        precondition(count <= Self.capacity)
        let access = PROT_READ | PROT_WRITE
        let pages = mmap(nil, Self.capacity, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let pages, pages != MAP_FAILED else { throw SystemError(call: "mmap", errno: errno) }
        (start, self.count) = (pages, count)
        try systemCall("madvise") { madvise(start, Self.capacity, MADV_DONTDUMP) }
        // The limit is small in some containers. Without the lock, the key may be swapped.
        _ = mlock(start, Self.capacity)
        try fill(UnsafeMutableRawBufferPointer(start: start, count: count))
        try systemCall("mprotect") { mprotect(start, Self.capacity, PROT_READ) }
    }

    deinit {
        mprotect(start, Self.capacity, PROT_READ | PROT_WRITE)
        OPENSSL_cleanse(start, UInt(Self.capacity))
        munmap(start, Self.capacity)
    }

    /// The bytes. They are valid as long as the object is retained.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
}

/// Memory for a key that is needed during one call. It is overwritten at the end.
struct ScratchKey: ~Copyable {
    let bytes: UnsafeMutableRawBufferPointer

    init(_ count: Int) {
        bytes = .allocate(byteCount: count, alignment: 16)
    }

    deinit {
        OPENSSL_cleanse(bytes.baseAddress, UInt(bytes.count))
        bytes.deallocate()
    }
}
