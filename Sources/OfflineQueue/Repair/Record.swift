internal import Foundation
internal import GRDB

/// The values of a row in the [record format](https://www.sqlite.org/fileformat2.html#record_format) of SQLite.
struct Record {
    /// SQLite's default limit (`SQLITE_MAX_COLUMN`).
    private static let mostColumns = 2000

    let values: [DatabaseValue]

    /// - Returns: `nil` if the bytes are not exactly one record, or if a text is not valid UTF-8.
    init?(_ bytes: [UInt8]) {
        var header = ByteReader(bytes[...])
        guard let size = header.varint(), size > 0, size <= bytes.count else { return nil }
        let own = bytes.count - header.count
        guard own <= size, let codes = header.bytes(Int(size) - own) else { return nil }
        var (types, content) = (ByteReader(codes), header)
        var values: [DatabaseValue] = []
        while !types.isAtEnd {
            guard values.count < Self.mostColumns, let type = types.varint(),
                let value = Self.value(of: type, &content)
            else { return nil }
            values.append(value)
        }
        guard content.isAtEnd else { return nil }
        self.values = values
    }

    private static func value(of type: Int64, _ content: inout ByteReader) -> DatabaseValue? {
        switch type {
        case 0: return .null
        case 1...4: return content.integer(Int(type))?.databaseValue
        case 5: return content.integer(6)?.databaseValue
        case 6: return content.integer(8)?.databaseValue
        case 7: return content.integer(8).map { Double(bitPattern: UInt64(bitPattern: $0)).databaseValue }
        case 8, 9: return (type - 8).databaseValue
        // 10 and 11 are not used in files.
        case 12...:
            guard let bytes = content.bytes(Int(clamping: (type - 12) / 2)) else { return nil }
            return type % 2 == 0
                ? Data(bytes).databaseValue
                : String(validating: bytes, as: UTF8.self)?.databaseValue
        default: return nil
        }
    }
}
