public import Foundation
public import FoundationNetworking

/// A type that decodes values from data.
@preconcurrency public protocol DataDecoder: Sendable {
    /// Decodes a value.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - data: The data to decode.
    /// - Throws: An error if the data cannot be decoded.
    func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D
}

extension JSONDecoder: DataDecoder {}

extension PropertyListDecoder: DataDecoder {}

extension Request {
    /// Decodes a value from a response. Custom serializers can call this function.
    ///
    /// - Parameters:
    ///   - type: The type of the value. Default: inferred from the result.
    ///   - decoder: The decoder.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: The request's error; `nil` for a success.
    /// - Returns: The first of these that applies:
    ///   - `error`, if it is not `nil`
    ///   - for an empty body, the type's ``EmptyResponse/emptyValue()``, if the type is an ``EmptyResponse`` and the
    ///     status is 204 or 205
    ///   - for any other empty body, ``AFError/ResponseSerializationFailureReason/inputDataNilOrZeroLength``
    ///   - ``AFError/ResponseSerializationFailureReason/decodingFailed(error:)``, if the decoder throws
    ///   - the decoded value
    public static func serializeResponseDecodable<T: Decodable>(
        of type: T.Type = T.self,
        decoder: any DataDecoder,
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?
    ) -> Result<T, any Error> {
        if let error { return .failure(error) }
        guard let data, !data.isEmpty else { return emptyValue(of: type, response) }
        return Result { try decode(type, decoder, data) }
            .mapError { AFError.responseSerializationFailed(reason: .decodingFailed(error: $0)) }
    }

    private static func emptyValue<T>(
        of type: T.Type,
        _ response: HTTPURLResponse?
    ) -> Result<T, any Error> {
        if response?.hasNoContent == true,
            let empty = (type as? any EmptyResponse.Type)?.emptyValue() as? T
        {
            return .success(empty)
        }
        return .failure(AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength))
    }

    private static func decode<T: Decodable>(
        _ type: T.Type,
        _ decoder: any DataDecoder,
        _ data: Data
    ) throws -> T {
        if decoder is PropertyListDecoder { try BinaryPropertyListCheck.check(data) }
        return try decoder.decode(type, from: data)
    }
}

extension BodyRequest {
    /// Returns a serializer that decodes a value; see
    /// ``Request/serializeResponseDecodable(of:decoder:response:data:error:)``.
    ///
    /// - Parameters:
    ///   - type: The type of the value. Default: inferred from the result.
    ///   - decoder: The decoder. Default: a `JSONDecoder`.
    @preconcurrency
    public static func decodableResponseSerializer<T: Decodable & SendableMetatype>(
        of type: T.Type = T.self,
        decoder: any DataDecoder = JSONDecoder()
    ) -> BodySerializer<T, Content> {
        .ofBytes { response, data, error in
            Request.serializeResponseDecodable(
                decoder: decoder,
                response: response,
                data: data,
                error: error
            )
        }
    }
}
