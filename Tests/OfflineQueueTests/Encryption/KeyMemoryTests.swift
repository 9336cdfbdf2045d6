internal import Foundation
internal import Glibc
internal import Testing

@testable internal import OfflineQueue

/// A core dump contains the pages of a process without those that are marked with `MADV_DONTDUMP`. This reads the same
/// pages, which does not depend on the settings of the kernel.
@Suite(.timeLimit(.minutes(5))) struct KeyMemoryTests {
    @Test func `a core dump does not contain the encryption key, while requests are encrypted with it`()
        async throws
    {
        let (file, directory) = (try TestKeys(), TemporaryDirectory())
        // The shell creates the key, so that this process has no copy of it.
        try run("umask 077; od -An -v -tx1 -N32 /dev/urandom | tr -d ' \\n' > \(file.path)")
        var settings = StoreSettings()
        settings.encryptionKeyFile = file.path
        let store = try await SQLiteQueueStore(directory: directory.path, settings: settings)
        for index in 0..<50 { try await store.enqueue(try new("\(index)")) }
        let spooled = try await store.spool.store(Data(repeating: 7, count: 200_000))
        #expect(await store.spool.verify(spooled) == nil)
        #expect(try await store.claimAll().count == 50)

        let (text, bytes) = (try HiddenBytes(64), try HiddenBytes(32))
        try text.read(from: file.path)
        text.decodeHex(into: bytes)
        #expect(try MemoryScan.occurrences(of: text) == 0)
        #expect(try MemoryScan.occurrences(of: bytes) == 0)
        // A copy in ordinary memory shows that the scan finds one.
        let copy = bytes.copy()
        defer { copy.deallocate() }
        #expect(try MemoryScan.occurrences(of: bytes) >= 1)
        await store.close()
    }

    private func run(_ command: String) throws {
        let shell = Process()
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.arguments = ["-c", command]
        try shell.run()
        shell.waitUntilExit()
        try #require(shell.terminationStatus == 0)
    }
}

/// Bytes in memory that core dumps leave out.
private final class HiddenBytes {
    let memory: UnsafeMutableRawBufferPointer

    init(_ count: Int) throws {
        let pages = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        try #require(pages != MAP_FAILED && madvise(pages, 4096, MADV_DONTDUMP) == 0)
        memory = UnsafeMutableRawBufferPointer(start: pages, count: count)
    }

    deinit { munmap(memory.baseAddress, 4096) }

    func read(from path: String) throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        try #require(pread(descriptor, memory.baseAddress, memory.count, 0) == memory.count)
    }

    func decodeHex(into bytes: HiddenBytes) {
        func value(_ digit: UInt8) -> UInt8 { digit < 0x60 ? digit - 0x30 : digit - 0x57 }
        for index in bytes.memory.indices {
            bytes.memory[index] = value(memory[2 * index]) << 4 | value(memory[2 * index + 1])
        }
    }

    func copy() -> UnsafeMutableRawBufferPointer {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: memory.count, alignment: 16)
        copy.copyMemory(from: UnsafeRawBufferPointer(memory))
        return copy
    }
}

private enum MemoryScan {
    /// The size of the pieces that are read. The buffer itself is left out of dumps, so that it is not searched.
    private static let pieceBytes = 1 << 20

    /// Returns the number of mappings in a core dump that contain the bytes.
    static func occurrences(of needle: HiddenBytes) throws -> Int {
        let file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        let pages = mmap(nil, pieceBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        try #require(pages != MAP_FAILED && madvise(pages, pieceBytes, MADV_DONTDUMP) == 0)
        defer { munmap(pages, pieceBytes) }
        return try dumpedMappings().count { mapping in
            var place = mapping.lowerBound
            while place < mapping.upperBound {
                let wanted = min(pieceBytes, mapping.upperBound - place)
                let count = pread(file, pages, wanted, off_t(place))
                if count > 0, contains(needle.memory, pages!, count) {
                    return true
                }
                // Consecutive pieces overlap, because the bytes may lie across the border.
                place +=
                    wanted > needle.memory.count && wanted == pieceBytes
                    ? wanted - needle.memory.count : wanted
            }
            return false
        }
    }

    /// Searches for the highest byte of the needle, because low bytes are frequent in memory.
    private static func contains(
        _ needle: UnsafeMutableRawBufferPointer,
        _ start: UnsafeMutableRawPointer,
        _ count: Int
    ) -> Bool {
        let anchor = needle.indices.max { needle[$0] < needle[$1] }!
        let end = start + count
        var place = start
        while let hit = memchr(place, CInt(needle[anchor]), place.distance(to: end)) {
            let first = start.distance(to: hit) - anchor
            if first >= 0, first + needle.count <= count,
                memcmp(start + first, needle.baseAddress!, needle.count) == 0
            {
                return true
            }
            place = hit + 1
        }
        return false
    }

    /// Reads the file with read(2): it has no size, so that Foundation reads only its first page.
    private static func smaps() throws -> String {
        let file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        var (text, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
        while case let count = read(file, &buffer, buffer.count), count > 0 { text += buffer.prefix(count) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The readable mappings without the flag `dd` (proc_pid_smaps(5)). Mappings of more than 4 GiB are address space
    /// that a sanitizer or an allocator has reserved.
    private static func dumpedMappings() throws -> [Range<Int>] {
        var (found, current): ([Range<Int>], Range<Int>?) = ([], nil)
        for line in try smaps().split(separator: "\n") {
            let words = line.split(separator: " ")
            if let word = words.first, word.contains("-"), words.count > 1, words[1].hasPrefix("r") {
                let ends = word.split(separator: "-").compactMap { Int($0, radix: 16) }
                current = ends.count == 2 ? ends[0]..<ends[1] : nil
            } else if words.first == "VmFlags:", let mapping = current {
                if !words.contains("dd"), mapping.count < 4 << 30 { found.append(mapping) }
                current = nil
            }
        }
        return found
    }
}
