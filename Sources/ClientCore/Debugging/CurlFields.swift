internal import Foundation
internal import NetwatchTransport

/// The header fields of a curl command.
struct CurlFields {
    /// Sorted by name.
    private let fields: [TransferRequest.Header]

    /// - Returns: `nil` if a field's name is no token or its value has a line break or NUL in it.
    init?(merging session: HTTPHeaders, _ request: HTTPHeaders?, _ cookies: String?) {
        var fields: [String: TransferRequest.Header] = [:]
        let stored = cookies.map { ["Cookie": $0] } ?? [:]
        for headers in [session, stored, request ?? [:]] {
            // Sorted, so that of two names that differ in case the same one always wins.
            for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
                fields[name.lowercased()] = .init(name, Self.trimmed(value))
            }
        }
        guard fields.values.allSatisfy(Self.isSendable) else { return nil }
        self.fields = fields.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Without the whitespace around it, which is not part of a value (RFC 9110 §5.5).
    private static func trimmed(_ value: String) -> String {
        let isSpace = { (scalar: Unicode.Scalar) in scalar == " " || scalar == "\t" }
        let end = value.unicodeScalars.reversed().drop(while: isSpace)
        return String(String.UnicodeScalarView(end.reversed().drop(while: isSpace)))
    }

    private static func isSendable(_ field: TransferRequest.Header) -> Bool {
        HTTPToken.isValid(field.name) && field.value.utf8.allSatisfy { $0 != 0 && $0 != 0x0a && $0 != 0x0d }
    }

    /// The value of a field, whose name is compared without case.
    subscript(name: String) -> String? {
        fields.first { $0.isNamed(name) }?.value
    }

    /// - Parameter hasBody: Whether curl would take the body for a form unless told otherwise.
    func options(_ secrets: CurlSecrets, hasBody: Bool) -> [String] {
        // Cookies before the rest.
        var options = fields.filter { $0.isNamed("Cookie") }.map { Self.cookieOption(secrets.field($0)) }
        options += fields.filter { !$0.isNamed("Cookie") }.map { Self.option(secrets.field($0)) }
        if hasBody, self["Content-Type"] == nil { options.append("-H 'Content-Type:'") }
        // curl sends the field as it is, and decodes the response before it prints it.
        if self["Accept-Encoding"] != nil { options.append("--compressed") }
        return options
    }

    /// What has no `=`, or starts with `@`, curl would take for the name of a file.
    private static func cookieOption(_ field: TransferRequest.Header) -> String {
        let bytes = field.value.utf8
        guard bytes.contains(UInt8(ascii: "=")), bytes.first != UInt8(ascii: "@") else {
            return option(field)
        }
        return "-b " + Shell.quoted(field.value)
    }

    /// With nothing after the colon curl would leave the field out; the semicolon sends it empty.
    private static func option(_ field: TransferRequest.Header) -> String {
        "-H " + Shell.quoted(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
    }
}
