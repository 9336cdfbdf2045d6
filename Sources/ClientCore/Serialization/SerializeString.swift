public import Foundation
public import FoundationNetworking

extension Request {
    /// Decodes the text of a response. Custom serializers can call this function.
    ///
    /// - Parameters:
    ///   - encoding: The body's encoding. `nil` stands for the `charset` of the response's `Content-Type`, or for ISO
    ///     8859-1 if the `charset` is missing or unknown.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: The request's error; `nil` for a success.
    /// - Returns: The first of these that applies:
    ///   - `error`, if it is not `nil`
    ///   - an empty string, if the status is 204 or 205
    ///   - ``AFError/ResponseSerializationFailureReason/inputDataNil``, if `data` is `nil`
    ///   - ``AFError/ResponseSerializationFailureReason/stringSerializationFailed(encoding:)``, if the body is not text
    ///     in the encoding
    ///   - the text
    public static func serializeResponseString(
        encoding: String.Encoding?,
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?
    ) -> Result<String, any Error> {
        if let error { return .failure(error) }
        if response?.hasNoContent == true { return .success("") }
        guard let data else {
            return .failure(AFError.responseSerializationFailed(reason: .inputDataNil))
        }
        let encoding = encoding ?? response?.charset ?? .isoLatin1
        guard let text = String(data: data, encoding: encoding) else {
            let reason = AFError.ResponseSerializationFailureReason.stringSerializationFailed(
                encoding: encoding
            )
            return .failure(AFError.responseSerializationFailed(reason: reason))
        }
        return .success(text)
    }
}

extension BodyRequest {
    /// Returns a serializer that decodes text; see
    /// ``Request/serializeResponseString(encoding:response:data:error:)``.
    ///
    /// - Parameter encoding: The body's encoding. Default: the charset of the response's `Content-Type`, or ISO 8859-1.
    public static func stringResponseSerializer(
        encoding: String.Encoding? = nil
    ) -> BodySerializer<String, Content> {
        .ofBytes(readsHead: true) { response, data, error in
            Request.serializeResponseString(encoding: encoding, response: response, data: data, error: error)
        }
    }
}

extension HTTPURLResponse {
    /// The encoding of the `charset` in the response's `Content-Type`; `nil` if the `charset` is missing or unknown.
    fileprivate var charset: String.Encoding? {
        value(forHTTPHeaderField: "Content-Type")
            .flatMap { MediaTypeParameters.value(of: "charset", in: $0) }
            .flatMap(String.Encoding.init(charset:))
    }
}

extension String.Encoding {
    /// Creates the encoding for a name in IANA's character set registry; case is ignored. Returns `nil` if Foundation
    /// on Linux does not support the encoding.
    init?(charset name: String) {
        guard let encoding = Self.charsets[name.lowercased()] else { return nil }
        self = encoding
    }

    /// The encodings by the names that servers use, including aliases.
    ///
    /// GBK and GB 2312 are decoded as GB 18030, as in browsers, because it is a superset of them. EUC-JP is missing,
    /// because Foundation on Linux declares EUC-JP but cannot decode it.
    private static let charsets: [String: String.Encoding] = Dictionary(
        charsetNames.flatMap { encoding, names in names.map { ($0, encoding) } }
    ) { first, _ in first }

    private static let charsetNames: [(String.Encoding, [String])] = unicodeNames + europeanNames + asianNames

    private static let unicodeNames: [(String.Encoding, [String])] = [
        (.utf8, ["utf-8", "utf8"]),
        (.utf16, ["utf-16", "utf16"]),
        (.utf16BigEndian, ["utf-16be"]),
        (.utf16LittleEndian, ["utf-16le"]),
        (.utf32, ["utf-32", "utf32"]),
        (.utf32BigEndian, ["utf-32be"]),
        (.utf32LittleEndian, ["utf-32le"]),
    ]

    private static let europeanNames: [(String.Encoding, [String])] = [
        (.ascii, ["us-ascii", "ascii", "iso646-us", "ansi_x3.4-1968"]),
        (.isoLatin1, ["iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "l1"]),
        (.isoLatin2, ["iso-8859-2", "iso8859-2", "iso_8859-2", "latin2", "l2"]),
        (.core(0x0203), ["iso-8859-3", "latin3"]),
        (.core(0x0204), ["iso-8859-4", "latin4"]),
        (.core(0x0205), ["iso-8859-5", "cyrillic"]),
        (.core(0x0206), ["iso-8859-6", "arabic"]),
        (.core(0x0207), ["iso-8859-7", "greek"]),
        (.core(0x0208), ["iso-8859-8", "hebrew"]),
        (.core(0x0209), ["iso-8859-9", "latin5"]),
        (.core(0x020A), ["iso-8859-10", "latin6"]),
        (.core(0x020B), ["iso-8859-11", "tis-620"]),
        (.core(0x020D), ["iso-8859-13"]),
        (.core(0x020E), ["iso-8859-14", "latin8"]),
        (.core(0x020F), ["iso-8859-15", "latin-9"]),
        (.core(0x0210), ["iso-8859-16", "latin10"]),
        (.windowsCP1250, ["windows-1250", "cp1250"]),
        (.windowsCP1251, ["windows-1251", "cp1251"]),
        (.windowsCP1252, ["windows-1252", "cp1252"]),
        (.windowsCP1253, ["windows-1253", "cp1253"]),
        (.windowsCP1254, ["windows-1254", "cp1254"]),
        (.core(0x0505), ["windows-1255", "cp1255"]),
        (.core(0x0506), ["windows-1256", "cp1256"]),
        (.core(0x0507), ["windows-1257", "cp1257"]),
        (.core(0x0508), ["windows-1258", "cp1258"]),
        (.core(0x0A02), ["koi8-r"]),
    ]

    private static let asianNames: [(String.Encoding, [String])] = [
        (.shiftJIS, ["shift_jis", "shift-jis", "sjis", "windows-31j"]),
        (.iso2022JP, ["iso-2022-jp"]),
        (.core(0x0632), ["gb18030", "gbk", "gb2312"]),
        (.core(0x0A03), ["big5"]),
        (.core(0x0940), ["euc-kr", "ks_c_5601-1987"]),
    ]

    /// Returns the encoding with a number of CoreFoundation (`CFStringEncodingExt.h`). Foundation accepts these numbers
    /// in addition to its own.
    private static func core(_ number: UInt) -> Self {
        Self(rawValue: 0x8000_0000 | number)
    }
}
