public import Foundation
public import FoundationNetworking

extension Request {
    /// Returns the body of a response, as ``BodyRequest/responseData(queue:completionHandler:)`` does. Custom
    /// serializers can call this function.
    ///
    /// - Parameters:
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: The request's error; `nil` for a success.
    /// - Returns: The first of these that applies:
    ///   - `error`, if it is not `nil`
    ///   - empty data, if the status is 204 or 205
    ///   - ``AFError/ResponseSerializationFailureReason/inputDataNil``, if `data` is `nil`
    ///   - `data`
    public static func serializeResponseData(
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?
    ) -> Result<Data, any Error> {
        if let error { return .failure(error) }
        if response?.hasNoContent == true { return .success(Data()) }
        guard let data else {
            return .failure(AFError.responseSerializationFailed(reason: .inputDataNil))
        }
        return .success(data)
    }
}

extension BodyRequest {
    /// Returns a serializer that returns the body unchanged; see
    /// ``Request/serializeResponseData(response:data:error:)``.
    public static func dataResponseSerializer() -> BodySerializer<Data, Content> {
        .ofBytes { response, data, error in
            Request.serializeResponseData(response: response, data: data, error: error)
        }
    }
}
