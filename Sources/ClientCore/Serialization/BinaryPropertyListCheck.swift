internal import Foundation

/// Why a binary property list is not even given to Foundation.
enum HostilePropertyList: Error, CustomStringConvertible {
    /// Its shared parts make more objects than anybody means to have.
    case tooManyObjects(limit: Int)
    /// It has an object of a kind that no property list has.
    case objectKind(marker: UInt8)
    /// It has a dictionary with a key that is no text.
    case dictionaryKey(marker: UInt8)

    var description: String {
        switch self {
        case .tooManyObjects(let limit): "its shared parts make more than \(limit) objects"
        case .objectKind(let marker): "an object has the marker \(marker), which no property list has"
        case .dictionaryKey(let marker): "a key has the marker \(marker), which is no text's"
        }
    }
}

/// Looks for what Foundation reads of a binary property list to its harm.
///
/// In that format (`CFBinaryPList.c`) a container holds references, and several may lead to one object,
/// which Foundation copies for each of them: a kilobyte of lists that hold the next list twice is a
/// million million objects. What Foundation writes shares no containers. And a set, which the format has
/// and a property list has not, ends the process when Foundation bridges it (measured with Swift 6.3).
struct BinaryPropertyListCheck {
    /// How many objects may come of a list that has fewer bytes than that.
    static let limit = 1_000_000

    /// Throws ``HostilePropertyList``. What is merely broken is Foundation's to refuse.
    static func check(_ data: Data) throws {
        guard data.starts(with: Array("bplist".utf8)), var check = Self(data) else { return }
        guard try check.count(check.topObject, depth: 0) <= check.limit else {
            throw HostilePropertyList.tooManyObjects(limit: check.limit)
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

    /// A reference takes a byte at least, so a list without shared parts never has more than its bytes.
    private var limit: Int { max(Self.limit, bytes.count) }

    /// The object and all that it holds, as far as it is not too many; in a circle it is. Deeper than
    /// Foundation goes it is none: Foundation refuses that.
    private mutating func count(_ object: Int, depth: Int) throws -> Int {
        if let known = counts[object] { return known }
        guard depth <= 512, let (table, entries) = try references(of: object) else { return 1 }
        // For whoever comes here again before the end.
        counts[object] = .max
        var sum = 1
        for entry in 0..<entries {
            // What leads nowhere ends it, or it would be looked at for nothing, once for each that shares it.
            guard sum <= limit, let reference = element(entry, of: table, size: referenceSize) else { break }
            let (total, overflows) = sum.addingReportingOverflow(try count(reference, depth: depth + 1))
            sum = overflows ? .max : total
        }
        counts[object] = sum
        return sum
    }

    /// Where a container's references are, and how many; `nil` for other objects, and for what is broken.
    private func references(of object: Int) throws -> (table: Int, count: Int)? {
        guard let (marker, offset) = marker(of: object) else { return nil }
        switch marker >> 4 {
        case 0xA: return length(marker, offset + 1).map { ($0.start, $0.count) }
        case 0xD:
            guard let (count, start) = length(marker, offset + 1) else { return nil }
            try checkKeys(table: start, count: count)
            return (start, count * 2)
        // Booleans, integers, reals, dates, bytes, and texts of two kinds.
        case 0x0 where marker == 0x08 || marker == 0x09, 0x1...0x6: return nil
        default: throw HostilePropertyList.objectKind(marker: marker)
        }
    }

    /// The first half of a dictionary's references are its keys.
    private func checkKeys(table: Int, count: Int) throws {
        for entry in 0..<count {
            guard let key = element(entry, of: table, size: referenceSize), let (marker, _) = marker(of: key)
            else { return }
            guard marker >> 4 == 5 || marker >> 4 == 6 else {
                throw HostilePropertyList.dictionaryKey(marker: marker)
            }
        }
    }

    private func marker(of object: Int) -> (marker: UInt8, offset: Int)? {
        guard object < objectCount, let offset = element(object, of: offsetTable, size: offsetSize),
            offset < bytes.count
        else { return nil }
        return (bytes[offset], offset)
    }

    /// How many entries a container has, and where they begin: 15 means that an integer follows.
    private func length(_ marker: UInt8, _ next: Int) -> (count: Int, start: Int)? {
        guard marker & 0xF == 0xF else { return (Int(marker & 0xF), next) }
        guard next < bytes.count, bytes[next] >> 4 == 1, bytes[next] & 0xF <= 3 else { return nil }
        let size = 1 << Int(bytes[next] & 0xF)
        // Each takes a byte at least.
        guard let count = Self.integer(bytes, next + 1, size), count <= bytes.count else { return nil }
        return (count, next + 1 + size)
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
