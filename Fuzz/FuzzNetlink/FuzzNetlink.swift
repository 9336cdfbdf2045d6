internal import Glibc
internal import NetwatchNetlink

/// The entry point of libFuzzer. Passes the input to all code that parses bytes from the kernel.
///
/// Every input is parsed twice, because two mechanisms detect reads beyond its end. The address sanitizer detects
/// those of netwatch's code, after an allocation of exactly the input's length. libnl is not instrumented, so the
/// second copy ends right before a page without read permission.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let exact = UnsafeMutableRawBufferPointer(start: malloc(count), count: count)
    exact.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: count))
    read(exact)
    free(exact.baseAddress)
    guard count <= guarded.count else { return 0 }
    // Netlink messages are aligned to 4 bytes, so up to 3 bytes lie between the end of the input and the page.
    let start = (guarded.count - count) & ~3
    let last = UnsafeMutableRawBufferPointer(rebasing: guarded[start..<start + count])
    last.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: count))
    read(last)
    return 0
}

private func read(_ datagram: UnsafeMutableRawBufferPointer) {
    var batch = EventSocket.Batch()
    batch.add(datagram)
    RequestSocket.readReplies(in: datagram)
    if getenv("NETWATCH_PLANTED_FAULT") != nil { readTooFar(datagram) }
}

/// A buffer for the longest datagram, followed by a page without read permission.
nonisolated(unsafe) private let guarded: UnsafeMutableRawBufferPointer = {
    let (length, page) = (64 * 1024, Int(sysconf(CInt(_SC_PAGESIZE))))
    let memory = mmap(nil, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    precondition(memory != MAP_FAILED, "no memory")
    mprotect(memory! + length, page, PROT_NONE)
    return UnsafeMutableRawBufferPointer(start: memory, count: length)
}()

/// A planted fault, which shows that the fuzzer finds faults: it trusts the length that a message claims.
private func readTooFar(_ datagram: UnsafeMutableRawBufferPointer) {
    guard datagram.count >= 16 else { return }
    let claimed = datagram.loadUnaligned(as: UInt32.self)
    guard claimed > datagram.count, claimed < datagram.count + 64 else { return }
    let last = datagram.baseAddress!.load(fromByteOffset: Int(claimed) - 1, as: UInt8.self)
    if last == 1 { exit(1) }
}
