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

extension Request {
    /// Parses the property list in a response with `PropertyListSerialization`. Custom serializers can call this
    /// function.
    ///
    /// These lists are rejected, so that a server cannot exhaust the memory or crash the process:
    ///
    /// - lists with more than 512 levels
    /// - binary lists whose shared references expand to more than a million objects
    /// - binary lists with types that property lists do not support
    ///
    /// - Parameters:
    ///   - options: Options for reading the property list.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: The request's error; `nil` for a success.
    /// - Returns: The first of these that applies:
    ///   - `error`, if it is not `nil`
    ///   - `NSNull`, if the status is 204 or 205
    ///   - ``AFError/ResponseSerializationFailureReason/inputDataNilOrZeroLength``, if the body is empty
    ///   - ``AFError/ResponseSerializationFailureReason/propertyListSerializationFailed(error:)``, if the list is
    ///     malformed or rejected
    ///   - the parsed value
    public static func serializeResponsePropertyList(
        options: PropertyListSerialization.ReadOptions,
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?
    ) -> Result<Any, any Error> {
        if let error { return .failure(error) }
        if response?.hasNoContent == true { return .success(NSNull()) }
        guard let data, !data.isEmpty else {
            return .failure(AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength))
        }
        return Result { try propertyList(data, options) }
            .mapError {
                AFError.responseSerializationFailed(reason: .propertyListSerializationFailed(error: $0))
            }
    }

    private static func propertyList(
        _ data: Data,
        _ options: PropertyListSerialization.ReadOptions
    ) throws -> Any {
        try BinaryPropertyListCheck.check(data)
        return try PropertyListSerialization.propertyList(from: data, options: options, format: nil)
    }
}

extension BodyRequest {
    /// Returns a serializer that parses a property list; see
    /// ``Request/serializeResponsePropertyList(options:response:data:error:)``.
    ///
    /// - Parameter options: Options for reading the property list. Default: immutable objects.
    public static func propertyListResponseSerializer(
        options: PropertyListSerialization.ReadOptions = []
    ) -> BodySerializer<Any, Content> {
        .ofBytes { response, data, error in
            Request.serializeResponsePropertyList(
                options: options,
                response: response,
                data: data,
                error: error
            )
        }
    }
}

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

/// A type that has a value for a response without content (status 204 or 205).
@preconcurrency public protocol EmptyResponse: Sendable {
    /// The value of a response without content.
    static func emptyValue() -> Self
}

/// A value to decode from responses that never have content.
public struct Empty: Codable, Hashable, EmptyResponse {
    /// The only value.
    public static let value = Empty()

    /// Returns the only value.
    public static func emptyValue() -> Empty { value }
}
