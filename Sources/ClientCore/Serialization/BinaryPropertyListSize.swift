internal import Foundation

/// A binary property list that would make more objects than anybody means to have.
struct PropertyListTooLarge: Error, CustomStringConvertible {
    let description = "its shared parts make more than \(BinaryPropertyListSize.limit) objects"
}

/// How many objects a binary property list makes.
///
/// In that format (`CFBinaryPList.c`) a container holds references, and several may lead to one object,
/// which Foundation copies for each of them: a kilobyte of lists that hold the next list twice is a
/// million million objects. What is written by Foundation shares no containers.
struct BinaryPropertyListSize {
    /// How many objects may come of a list that has fewer bytes than that.
    static let limit = 1_000_000

    /// Throws ``PropertyListTooLarge`` for what is too large. What is broken otherwise is Foundation's to
    /// refuse.
    static func check(_ data: Data) throws {
        guard data.starts(with: Array("bplist".utf8)), var size = Self(data) else { return }
        // A reference takes a byte at least, so a list without shared parts never has more than its bytes.
        guard size.count(size.topObject, depth: 0) <= max(limit, data.count) else {
            throw PropertyListTooLarge()
        }
    }

    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let objectCount: Int
    private let topObject: Int
    private let offsetTable: Int
    private var counts: [Int: Int] = [:]

    /// Reads the trailer: the last 32 bytes.
    private init?(_ data: Data) {
        bytes = Array(data)
        guard bytes.count >= 40 else { return nil }
        let trailer = bytes.count - 32
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
            let objectCount = Self.integer(bytes, trailer + 8, 8),
            let topObject = Self.integer(bytes, trailer + 16, 8),
            let offsetTable = Self.integer(bytes, trailer + 24, 8)
        else { return nil }
        (self.objectCount, self.topObject, self.offsetTable) = (objectCount, topObject, offsetTable)
    }

    /// The object and all that it holds, as far as it is not too many; in a circle it is. Deeper than
    /// Foundation goes it is none: Foundation refuses that.
    private mutating func count(_ object: Int, depth: Int) -> Int {
        if let known = counts[object] { return known }
        guard depth <= 512, let (table, entries) = references(of: object) else { return 1 }
        // For whoever comes here again before the end.
        counts[object] = .max
        var sum = 1
        for entry in 0..<entries where sum <= max(Self.limit, bytes.count) {
            guard let reference = element(entry, of: table, size: referenceSize) else { continue }
            let (total, overflows) = sum.addingReportingOverflow(count(reference, depth: depth + 1))
            sum = overflows ? .max : total
        }
        counts[object] = sum
        return sum
    }

    /// Where a container's references are, and how many; `nil` for other objects, and for what is broken.
    private func references(of object: Int) -> (table: Int, count: Int)? {
        guard object < objectCount, let offset = element(object, of: offsetTable, size: offsetSize),
            offset < bytes.count
        else { return nil }
        let marker = bytes[offset]
        // Lists and sets have one for each entry, dictionaries two.
        guard let perEntry = [0xA: 1, 0xB: 1, 0xC: 1, 0xD: 2][marker >> 4],
            let (count, table) = length(marker, offset + 1),
            // Each takes a byte at least.
            count <= bytes.count
        else { return nil }
        return (table, count * perEntry)
    }

    /// How many entries a container has, and where they begin: 15 means that an integer follows.
    private func length(_ marker: UInt8, _ next: Int) -> (count: Int, start: Int)? {
        guard marker & 0xF == 0xF else { return (Int(marker & 0xF), next) }
        guard next < bytes.count, bytes[next] >> 4 == 1, bytes[next] & 0xF <= 3 else { return nil }
        let size = 1 << Int(bytes[next] & 0xF)
        return Self.integer(bytes, next + 1, size).map { ($0, next + 1 + size) }
    }

    private func element(_ index: Int, of table: Int, size: Int) -> Int? {
        let (position, overflows) = index.multipliedReportingOverflow(by: size)
        let (start, overflowsToo) = table.addingReportingOverflow(position)
        return overflows || overflowsToo ? nil : Self.integer(bytes, start, size)
    }

    /// A number, most significant byte first; `nil` outside of the bytes, and when it is no `Int`.
    private static func integer(_ bytes: [UInt8], _ start: Int, _ size: Int) -> Int? {
        guard start >= 0, start <= bytes.count - size else { return nil }
        let value = bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(exactly: value)
    }
}
