internal import Foundation
internal import NetwatchTransport

/// Encodes the header fields of a part, including the empty line at the end.
enum MultipartHead {
    /// Returns the encoded fields of a part with a name and, if they are not `nil`, a file name and a content type.
    ///
    /// - Throws: ``AFError/MultipartEncodingFailureReason/bodyPartHeaderInvalid(name:value:)``.
    static func of(name: String, fileName: String?, mimeType: String?) throws -> Data {
        var disposition = "form-data; name=\(try quoted(name, as: "name"))"
        if let fileName { disposition += "; filename=\(try quoted(fileName, as: "filename"))" }
        var lines = ["Content-Disposition: \(disposition)"]
        if let mimeType { lines.append(try line("Content-Type", mimeType)) }
        return bytes(of: lines)
    }

    /// Returns the encoded fields. `Content-Disposition` comes first and the others are sorted by name, because the
    /// order of a dictionary differs from run to run.
    ///
    /// - Throws: ``AFError/MultipartEncodingFailureReason/bodyPartHeaderInvalid(name:value:)``.
    static func of(_ headers: HTTPHeaders) throws -> Data {
        let isDisposition = { (name: String) in name.lowercased() == "content-disposition" }
        let names = headers.keys.sorted { left, right in
            isDisposition(left) == isDisposition(right) ? left < right : isDisposition(left)
        }
        return bytes(of: try names.map { try line($0, headers[$0] ?? "") })
    }

    private static func bytes(of lines: [String]) -> Data {
        Data((lines + [""]).map { "\($0)\r\n" }.joined().utf8)
    }

    private static func line(_ name: String, _ value: String) throws -> String {
        let isControl = { (byte: UInt8) in byte < 0x20 && byte != 0x09 || byte == 0x7f }
        guard HTTPToken.isValid(name), !value.isEmpty, !value.utf8.contains(where: isControl) else {
            throw invalid(name, value)
        }
        return "\(name): \(value)"
    }

    /// Quotes the text with the escapes of WHATWG HTML, and also escapes a backslash at the end. A parser that supports
    /// the quoted pairs of RFC 822 would read `\"` as an escaped quotation mark, not as the end of the name.
    private static func quoted(_ text: String, as parameter: String) throws -> String {
        guard !text.utf8.contains(0) else { throw invalid(parameter, text) }
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "%22"
            case "\r": result += "%0D"
            case "\n": result += "%0A"
            default: result.unicodeScalars.append(scalar)
            }
        }
        if result.utf8.last == UInt8(ascii: "\\") {
            result.unicodeScalars.removeLast()
            result += "%5C"
        }
        return "\"\(result)\""
    }

    private static func invalid(_ name: String, _ value: String) -> AFError {
        .multipartEncodingFailed(reason: .bodyPartHeaderInvalid(name: name, value: value))
    }
}
