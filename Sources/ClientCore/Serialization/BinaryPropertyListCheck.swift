internal import Foundation

/// The reason why a binary property list is rejected before Foundation reads it.
enum HostilePropertyList: Error, CustomStringConvertible {
    /// Shared references expand to too many objects.
    case tooManyObjects(limit: Int)
    /// An object has a type that property lists do not support.
    case objectKind(marker: UInt8)
    /// A dictionary has a key that is not a string.
    case dictionaryKey(marker: UInt8)

    var description: String {
        switch self {
        case .tooManyObjects(let limit): "the property list expands to more than \(limit) objects"
        case .objectKind(let marker): "an object has the unsupported type marker \(marker)"
        case .dictionaryKey(let marker): "a key has the type marker \(marker); keys must be strings"
        }
    }
}

/// Detects binary property lists that would crash Foundation or exhaust memory.
///
/// Two features of the format (`CFBinaryPList.c`) are dangerous:
///
/// - Containers hold references, and several references may lead to the same object. Foundation copies the object for
///   each reference. One kilobyte of arrays, each of which contains the next array twice, expands to about 10^12
///   objects. In property lists that Foundation writes, only one reference leads to each container.
/// - The format has sets, which property lists do not support. Converting one to a Swift value terminates the process
///   (measured with Swift 6.3).
struct BinaryPropertyListCheck {
    /// The maximum number of objects in a list of up to a million bytes. A longer list may have as many objects as
    /// bytes.
    static let limit = 1_000_000

    /// Throws ``HostilePropertyList`` if the data is a dangerous binary property list. Does not throw for a list that
    /// is only malformed, because Foundation rejects it.
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

    /// Reads the trailer: the last 32 bytes, with the sizes and the position of the offset table. Returns `nil` if it
    /// is malformed.
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

    /// The maximum number of objects in this list. Each reference takes at least one byte, so a list without shared
    /// references never has more objects than bytes.
    private var limit: Int { max(Self.limit, bytes.count) }

    /// Returns the number of objects in an object, including itself.
    ///
    /// - Counting stops above the limit.
    /// - A cycle counts as too many objects.
    /// - An object that is nested more than 512 levels deep counts as one object, whatever it contains, because
    ///   Foundation rejects a list with more levels.
    private mutating func count(_ object: Int, depth: Int) throws -> Int {
        if let known = counts[object] { return known }
        guard depth <= 512, let (table, entries) = try references(of: object) else { return 1 }
        // Detects a cycle that leads back to this object.
        counts[object] = .max
        var sum = 1
        for entry in 0..<entries {
            // Stop at an invalid reference, because Foundation rejects the list. Examining the remaining references
            // could take long.
            guard sum <= limit, let reference = element(entry, of: table, size: referenceSize) else { break }
            let (total, overflows) = sum.addingReportingOverflow(try count(reference, depth: depth + 1))
            sum = overflows ? .max : total
        }
        counts[object] = sum
        return sum
    }

    /// Returns the position and the number of a container's references; `nil` if the object is malformed or not a
    /// container.
    private func references(of object: Int) throws -> (table: Int, count: Int)? {
        guard let (marker, offset) = marker(of: object) else { return nil }
        switch marker >> 4 {
        case 0xA: return length(marker, offset + 1).map { ($0.start, $0.count) }
        case 0xD:
            guard let (count, start) = length(marker, offset + 1) else { return nil }
            try checkKeys(table: start, count: count)
            return (start, count * 2)
        // Booleans, integers, reals, dates, data, two types of strings, and the references of keyed archives.
        case 0x0 where marker == 0x08 || marker == 0x09, 0x1...0x6, 0x8: return nil
        default: throw HostilePropertyList.objectKind(marker: marker)
        }
    }

    /// Checks the keys, which are the first half of a dictionary's references.
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

    /// Returns the number of entries of a container and the position of the first entry. The low four bits of the
    /// marker contain the number if it is below 15. If they are 15, an integer with the number follows.
    private func length(_ marker: UInt8, _ next: Int) -> (count: Int, start: Int)? {
        guard marker & 0xF == 0xF else { return (Int(marker & 0xF), next) }
        guard next < bytes.count, bytes[next] >> 4 == 1, bytes[next] & 0xF <= 3 else { return nil }
        let size = 1 << Int(bytes[next] & 0xF)
        // Each entry takes at least one byte.
        guard let count = Self.integer(bytes, next + 1, size), count <= bytes.count else { return nil }
        return (count, next + 1 + size)
    }

    private func element(_ index: Int, of table: Int, size: Int) -> Int? {
        let (position, overflows) = index.multipliedReportingOverflow(by: size)
        let (start, overflowsToo) = table.addingReportingOverflow(position)
        return overflows || overflowsToo ? nil : Self.integer(bytes, start, size)
    }

    /// Reads a big-endian number; `nil` if it is out of bounds or does not fit into `Int`.
    private static func integer(_ bytes: [UInt8], _ start: Int, _ size: Int) -> Int? {
        guard start >= 0, start <= bytes.count - size else { return nil }
        let value = bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(exactly: value)
    }
}
