internal import Foundation
internal import Glibc

/// The properties of the program and the machine that the default header fields are made from.
struct ProgramInfo: Sendable {
    /// The environment variables.
    var environment: [String: String] = [:]
    /// The name that the program was started with, possibly with a path.
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

/// The file that names the operating system (`os-release(5)`).
struct OSRelease: Sendable {
    private let values: [String: String]

    /// Parses lines of `NAME=value` or `NAME="value"`. The last value of a name counts.
    init(_ text: String) {
        var values: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { values[String(parts[0])] = Self.unquoted(parts[1]) }
        }
        self.values = values
    }

    /// The display name of the system, or else its name and version; `nil` if both are missing.
    var operatingSystemName: String? {
        if let name = value("PRETTY_NAME") { return name }
        let parts = [value("NAME"), value("VERSION_ID")].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: " ")
    }

    /// The contents of `/etc/os-release`, or else `/usr/lib/os-release`, or else nothing. At most 64 KiB are
    /// read.
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

    /// Removes quotes and backslashes, which is accurate enough for names.
    private static func unquoted(_ value: Substring) -> String {
        guard let quote = value.first, quote == "\"" || quote == "'", value.count > 1, value.last == quote
        else { return String(value) }
        return value.dropFirst().dropLast().replacingOccurrences(of: "\\", with: "")
    }
}
