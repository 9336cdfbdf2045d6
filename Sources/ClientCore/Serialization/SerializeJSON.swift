public import Foundation
public import FoundationNetworking

extension Request {
    /// Parses the JSON in a response with `JSONSerialization`, which rejects more than 512 levels. Custom serializers
    /// can call this function.
    ///
    /// - Parameters:
    ///   - options: Options for reading the JSON.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: The request's error; `nil` for a success.
    /// - Returns: The first of these that applies:
    ///   - `error`, if it is not `nil`
    ///   - `NSNull`, if the status is 204 or 205
    ///   - ``AFError/ResponseSerializationFailureReason/inputDataNilOrZeroLength``, if the body is empty
    ///   - ``AFError/ResponseSerializationFailureReason/jsonSerializationFailed(error:)``, if the body is not JSON
    ///   - the parsed value
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

extension BodyRequest {
    /// Returns a serializer that parses JSON; see ``Request/serializeResponseJSON(options:response:data:error:)``.
    ///
    /// - Parameter options: Options for reading the JSON. Default: `.allowFragments`, which accepts any JSON value at
    ///   the top level.
    public static func jsonResponseSerializer(
        options: JSONSerialization.ReadingOptions = .allowFragments
    ) -> BodySerializer<Any, Content> {
        .ofBytes { response, data, error in
            Request.serializeResponseJSON(options: options, response: response, data: data, error: error)
        }
    }
}
