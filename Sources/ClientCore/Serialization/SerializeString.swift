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
