internal import Foundation
internal import Glibc

/// The properties of the program and the machine from which the default header fields are created.
struct ProgramInfo: Sendable {
    /// The environment variables.
    var environment: [String: String] = [:]
    /// The first argument of the program: its name, possibly with a path.
    var program = ""
    /// The program's version, if it has an `Info.plist` with one.
    var programVersion: String?
    /// The description of the operating system (`os-release(5)`).
    var osRelease = OSRelease("")
    /// The kernel's release (`uname(2)`).
    var kernelRelease = ""

    /// The values of the current process, read once.
    static let current = ProgramInfo(
        environment: ProcessInfo.processInfo.environment,
        program: CommandLine.arguments.first ?? "",
        programVersion: Bundle.main.infoDictionary?["CFBundleShortVersionString"] as? String,
        osRelease: .ofThisMachine,
        kernelRelease: Self.kernel()
    )

    private static func kernel() -> String {
        var name = utsname()
        guard uname(&name) == 0 else { return "" }
        return withUnsafeBytes(of: &name.release) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}

/// The contents of the file that describes the operating system (`os-release(5)`).
struct OSRelease: Sendable {
    private let values: [String: String]

    /// Parses lines of the form `NAME=value` or `NAME="value"`. If a name occurs twice, the last value is used.
    init(_ text: String) {
        var values: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { values[String(parts[0])] = Self.unquoted(parts[1]) }
        }
        self.values = values
    }

    /// `PRETTY_NAME`, or else `NAME` and `VERSION_ID`; `nil` if all are missing.
    var operatingSystemName: String? {
        if let name = value("PRETTY_NAME") { return name }
        let parts = [value("NAME"), value("VERSION_ID")].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: " ")
    }

    /// The contents of `/etc/os-release`, or else of `/usr/lib/os-release`; empty if neither can be read. At most
    /// 64 KiB are read.
    static var ofThisMachine: OSRelease {
        let paths = ["/etc/os-release", "/usr/lib/os-release"]
        let contents = paths.lazy.compactMap(beginning).first ?? Data()
        return OSRelease(String(decoding: contents, as: UTF8.self))
    }

    private static func beginning(of path: String) -> Data? {
        guard let file = FileHandle(forReadingAtPath: path) else { return nil }
        defer { try? file.close() }
        return try? file.read(upToCount: 65_536)
    }

    private func value(_ name: String) -> String? {
        values[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Removes the surrounding quotes and all backslashes. Escape sequences are not decoded, because the names of
    /// operating systems need none.
    private static func unquoted(_ value: Substring) -> String {
        guard let quote = value.first, quote == "\"" || quote == "'", value.count > 1, value.last == quote
        else { return String(value) }
        return value.dropFirst().dropLast().replacingOccurrences(of: "\\", with: "")
    }
}
