/// Parses and formats numbers of bytes in a configuration.
enum ByteSizeText {
    static let acceptedForms = "a size like `512`, `\"64 KiB\"`, `\"256 MiB\"`, `\"4 GiB\"` or `\"10 GB\"`"

    private static let units: [(name: String, bytes: Int64)] = [
        ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10),
        ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000), ("B", 1),
    ]

    /// Parses a whole number with a unit, with or without a space before it.
    static func parse(_ text: String) -> Int64? {
        let digits = text.prefix { ("0"..."9").contains($0) }
        let name = text.dropFirst(digits.count).drop { $0 == " " }
        guard let number = Int64(digits), let unit = units.first(where: { $0.name == name }) else {
            return nil
        }
        let (bytes, isTooLarge) = number.multipliedReportingOverflow(by: unit.bytes)
        return isTooLarge ? nil : bytes
    }

    /// Formats a size in the largest unit of which it is a multiple, as ``parse(_:)`` reads it.
    static func exact(_ bytes: Int64) -> String {
        let unit = units.first { bytes >= $0.bytes && bytes % $0.bytes == 0 && $0.name.hasSuffix("iB") }
        return unit.map { "\(bytes / $0.bytes) \($0.name)" } ?? "\(bytes) B"
    }
}
