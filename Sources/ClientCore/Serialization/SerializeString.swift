public import Foundation
public import FoundationNetworking

extension Request {
    /// Makes a text of a response.
    ///
    /// - Parameters:
    ///   - encoding: The body's encoding. With `nil` it is the `charset` of the response's `Content-Type`,
    ///     and ISO 8859-1 without one, or with one that is not known here.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: Why there is no whole response.
    /// - Returns: `error` if there is one; the empty text for the statuses 204 and 205; else the text, or
    ///   ``AFError/ResponseSerializationFailureReason/inputDataNil`` or
    ///   ``AFError/ResponseSerializationFailureReason/stringSerializationFailed(encoding:)``.
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

extension DataRequest {
    /// A serializer that makes a text of the body; see
    /// ``Request/serializeResponseString(encoding:response:data:error:)``.
    ///
    /// - Parameter encoding: The body's encoding. Default: what the response says.
    public static func stringResponseSerializer(
        encoding: String.Encoding? = nil
    ) -> DataResponseSerializer<String> {
        DataResponseSerializer { _, response, data, error in
            Request.serializeResponseString(encoding: encoding, response: response, data: data, error: error)
        }
    }
}

extension DownloadResponseSerializer where Value == String {
    /// Like ``DataRequest/stringResponseSerializer(encoding:)``, for a file.
    static func string(encoding: String.Encoding? = nil) -> Self {
        Self { Request.serializeResponseString(encoding: encoding, response: $0, data: $1, error: nil) }
    }
}

extension HTTPURLResponse {
    /// The encoding that the response says its body has; `nil` when it says none that is known here.
    fileprivate var charset: String.Encoding? {
        value(forHTTPHeaderField: "Content-Type")
            .flatMap { MediaTypeParameters.value(of: "charset", in: $0) }
            .flatMap(String.Encoding.init(charset:))
    }
}
