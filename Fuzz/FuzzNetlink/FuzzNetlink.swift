internal import Glibc
internal import NetwatchNetlink

/// The function that libFuzzer calls with each input. Passes the input to all code that parses bytes from the kernel.
///
/// Every input is parsed twice, because a read beyond its end is detected in two ways:
///
/// - In netwatch's code by the address sanitizer. The first copy is in an allocation of exactly the input's length.
/// - In libnl, which is not instrumented, by a page without read permission. The second copy ends right before it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let exact = UnsafeMutableRawBufferPointer(start: malloc(count), count: count)
    exact.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: count))
    read(exact)
    free(exact.baseAddress)
    guard count <= guarded.count else { return 0 }
    // Netlink messages must be aligned to 4 bytes, so up to 3 bytes lie between the end of the input and the page.
    let start = (guarded.count - count) & ~3
    let last = UnsafeMutableRawBufferPointer(rebasing: guarded[start..<start + count])
    last.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: count))
    read(last)
    return 0
}

/// Parses a datagram as notifications and as replies. If `NETWATCH_PLANTED_FAULT` is set, also reads beyond its end.
private func read(_ datagram: UnsafeMutableRawBufferPointer) {
    var batch = EventSocket.Batch()
    batch.add(datagram)
    RequestSocket.readReplies(in: datagram)
    if getenv("NETWATCH_PLANTED_FAULT") != nil { readTooFar(datagram) }
}

/// A buffer of 64 KiB for a datagram, followed by a page without read permission.
nonisolated(unsafe) private let guarded: UnsafeMutableRawBufferPointer = {
    let (length, page) = (64 * 1024, Int(sysconf(CInt(_SC_PAGESIZE))))
    let memory = mmap(nil, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    precondition(memory != MAP_FAILED, "no memory")
    mprotect(memory! + length, page, PROT_NONE)
    return UnsafeMutableRawBufferPointer(start: memory, count: length)
}()

/// A planted fault, with which `scripts/fuzz --self-test` verifies that the fuzzer finds faults. Trusts the length in
/// the header of a message, and reads the last byte of that length.
private func readTooFar(_ datagram: UnsafeMutableRawBufferPointer) {
    guard datagram.count >= 16 else { return }
    let claimed = datagram.loadUnaligned(as: UInt32.self)
    guard claimed > datagram.count, claimed < datagram.count + 64 else { return }
    let last = datagram.baseAddress!.load(fromByteOffset: Int(claimed) - 1, as: UInt8.self)
    if last == 1 { exit(1) }
}
