public import Foundation
public import FoundationNetworking

extension Request {
    /// Serializes a response as ``DataRequest/responseData(queue:completionHandler:)`` does, for use in custom
    /// serializers.
    ///
    /// - Parameters:
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: The error if the response is not complete.
    /// - Returns: `error` if there is one; empty data for the statuses 204 and 205; otherwise `data`, or
    ///   ``AFError/ResponseSerializationFailureReason/inputDataNil``.
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

extension DataRequest {
    /// Returns a serializer that returns the body unchanged; see
    /// ``Request/serializeResponseData(response:data:error:)``.
    public static func dataResponseSerializer() -> DataResponseSerializer<Data> {
        .ofContent { response, data, error in
            Request.serializeResponseData(response: response, data: data, error: error)
        }
    }
}

extension DownloadResponseSerializer where Value == Data {
    /// Returns the equivalent of ``DataRequest/dataResponseSerializer()`` for a file.
    static func data() -> Self {
        Self { Request.serializeResponseData(response: $0, data: $1, error: nil) }
    }
}
