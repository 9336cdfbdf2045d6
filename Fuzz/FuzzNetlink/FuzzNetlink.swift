internal import Glibc
internal import NetwatchNetlink

/// What libFuzzer calls: everything that reads bytes of the kernel reads these.
///
/// Every input is read twice, because two things look for reads beyond its end. The address sanitizer sees
/// those of our code, behind an allocation that is exactly as long. libnl is not instrumented; it runs into a
/// page that may not be read.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let exact = UnsafeMutableRawBufferPointer(start: malloc(count), count: count)
    exact.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: count))
    read(exact)
    free(exact.baseAddress)
    guard count <= guarded.count else { return 0 }
    // The kernel's messages are aligned to 4, so up to 3 bytes lie between the end and the page.
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

/// The longest datagram that is read, in front of a page that may not be.
nonisolated(unsafe) private let guarded: UnsafeMutableRawBufferPointer = {
    let (length, page) = (64 * 1024, Int(sysconf(CInt(_SC_PAGESIZE))))
    let memory = mmap(nil, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    precondition(memory != MAP_FAILED, "no memory")
    mprotect(memory! + length, page, PROT_NONE)
    return UnsafeMutableRawBufferPointer(start: memory, count: length)
}()

/// A fault to be found, so that finding none means something: it believes the length that a message claims.
private func readTooFar(_ datagram: UnsafeMutableRawBufferPointer) {
    guard datagram.count >= 16 else { return }
    let claimed = datagram.loadUnaligned(as: UInt32.self)
    guard claimed > datagram.count, claimed < datagram.count + 64 else { return }
    let last = datagram.baseAddress!.load(fromByteOffset: Int(claimed) - 1, as: UInt8.self)
    if last == 1 { exit(1) }
}
