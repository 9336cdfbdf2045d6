public import Foundation
public import FoundationNetworking

extension Request {
    /// Makes objects of JSON in a response, by `JSONSerialization`. It refuses more than 512 levels.
    ///
    /// - Parameters:
    ///   - options: How the objects are made.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: Why there is no whole response.
    /// - Returns: `error` if there is one; `NSNull` for the statuses 204 and 205; else the objects, or
    ///   ``AFError/ResponseSerializationFailureReason/inputDataNilOrZeroLength`` or
    ///   ``AFError/ResponseSerializationFailureReason/jsonSerializationFailed(error:)``.
    public static func serializeResponseJSON(
        options: JSONSerialization.ReadingOptions,
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?
    ) -> Result<Any, any Error> {
        if let error { return .failure(error) }
        if response?.hasNoContent == true { return .success(NSNull()) }
        guard let data, !data.isEmpty else {
            return .failure(AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength))
        }
        return Result { try JSONSerialization.jsonObject(with: data, options: options) }
            .mapError { AFError.responseSerializationFailed(reason: .jsonSerializationFailed(error: $0)) }
    }
}

extension DataRequest {
    /// A serializer that makes objects of JSON; see
    /// ``Request/serializeResponseJSON(options:response:data:error:)``.
    ///
    /// - Parameter options: How the objects are made. Default: a text, a number or `null` alone will do.
    public static func jsonResponseSerializer(
        options: JSONSerialization.ReadingOptions = .allowFragments
    ) -> DataResponseSerializer<Any> {
        .ofContent { response, data, error in
            Request.serializeResponseJSON(options: options, response: response, data: data, error: error)
        }
    }
}

extension DownloadResponseSerializer where Value == Any {
    /// Like ``DataRequest/jsonResponseSerializer(options:)``, for a file.
    static func json(options: JSONSerialization.ReadingOptions = .allowFragments) -> Self {
        Self { Request.serializeResponseJSON(options: options, response: $0, data: $1, error: nil) }
    }
}
