internal import ClientCore
internal import Foundation

/// The options in the form of the control API: a JSON object with the options that differ from the defaults. The
/// encoder and the decoder must be those of ``QueueJSON``.
extension EnqueueOptions: Codable {
    /// The key of the options that a decoder assumes for missing members, in its `userInfo`. Default: those of
    /// ``EnqueueOptions/init(lane:isFIFO:id:)``.
    package static let defaults = CodingUserInfoKey(rawValue: "EnqueueOptions.defaults")!

    /// Decodes the options that the object contains; the others have their defaults.
    ///
    /// - Throws: `DecodingError`, or ``QueueError`` for a value that is not accepted.
    public init(from decoder: any Decoder) throws {
        self = decoder.userInfo[Self.defaults] as? EnqueueOptions ?? EnqueueOptions()
        let container = try decoder.container(keyedBy: MemberName.self)
        for member in Self.members where member.use != .stored { try member.decode(&self, container) }
    }

    /// Encodes the options that differ from their defaults.
    public func encode(to encoder: any Encoder) throws {
        try encode(to: encoder, except: EnqueueOptions())
    }

    /// Encodes the options that differ from others.
    package func encode(to encoder: any Encoder, except others: EnqueueOptions) throws {
        var container = encoder.container(keyedBy: MemberName.self)
        for member in Self.members where member.use != .stored && !member.isSame(self, others) {
            try member.encode(self, &container)
        }
    }

    /// The names of the members that a caller may give, in camel case.
    package static let memberNames = members.filter { $0.use != .stored }.map(\.name) + ["idempotencyKey"]
}

/// The options that are stored as one record, because SQL neither selects, orders nor counts by them. An export contains
/// the same record.
struct StoredOptions: Hashable, Codable {
    var options: EnqueueOptions

    init(_ options: EnqueueOptions) { self.options = options }

    /// Decodes a record. A member that is not known makes the options ``EnqueueOptions/unreadable``, because a request must
    /// not be sent without an option that a newer version has stored.
    ///
    /// - Throws: `DecodingError`, or ``QueueError`` for a value that is not accepted.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: MemberName.self)
        options = EnqueueOptions()
        try options.decodeStored(container)
        let known = Set(EnqueueOptions.members.filter { $0.use != .call }.map(\.name))
        guard let name = container.allKeys.map(\.stringValue).filter({ !known.contains($0) }).min() else {
            return
        }
        options.unreadable = "the option \(quoted(name.snakeCase)) is unknown, so the request is not sent"
    }

    /// Creates options from a column; `nil` stands for the defaults.
    ///
    /// - Throws: ``QueueError`` with `storeUnusable` if the column cannot be read.
    init(column text: String?) throws(QueueError) {
        guard let text else {
            options = EnqueueOptions()
            return
        }
        do {
            self = try QueueJSON.decoder.decode(StoredOptions.self, from: Data(text.utf8))
            try options.checkAttempts()
        } catch {
            let reason = QueueJSON.reason(error)
            // The text is not quoted: the URL of a webhook may contain a secret.
            throw QueueError(.storeUnusable, "the stored options cannot be read: \(reason)")
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: MemberName.self)
        let defaults = EnqueueOptions()
        for member in EnqueueOptions.members where member.use != .call && !member.isSame(options, defaults) {
            try member.encode(options, &container)
        }
    }
}

extension EnqueueOptions {
    /// The stored record of options; `nil` if all of them have their defaults.
    var stored: String? {
        let defaults = EnqueueOptions()
        guard Self.members.contains(where: { $0.use != .call && !$0.isSame(self, defaults) }) else {
            return nil
        }
        return (try? QueueJSON.encoder.encode(StoredOptions(self))).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// Creates options from a stored record. If it cannot be read, for example after a manual edit of the database, all
    /// options have their defaults, and ``unreadable`` says why.
    init(stored text: String?) {
        do throws(QueueError) {
            self = try StoredOptions(column: text).options
        } catch {
            self.init()
            unreadable = "\(error.message); the request is not sent"
        }
    }

    /// Checks the options of the attempts.
    func checkAttempts() throws(QueueError) {
        try timeouts.check()
        try statusRules.check()
        guard let most = maximumAttempts, most < 1 else { return }
        throw QueueError(.invalidOption, "the maximum number of attempts is \(most); it must be at least 1")
    }

    /// Whether the request has a webhook, or its stored options cannot be read.
    var mayHaveWebhook: Bool { onDone != nil || unreadable != nil }

    /// Reads the stored members of an object.
    mutating func decodeStored(_ container: KeyedDecodingContainer<MemberName>) throws {
        for member in Self.members where member.use != .call { try member.decode(&self, container) }
    }
}

// MARK: - Members

/// The name of a member, in camel case.
struct MemberName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension EnqueueOptions {
    /// A member of the JSON form.
    struct Member: Sendable {
        enum Use: Sendable {
            /// A caller may give the option. It has a column of its own, or none.
            case call
            /// A caller may give the option, and the record of stored options has it.
            case both
            /// Only the record of stored options has it.
            case stored
        }

        let name: String
        let use: Use
        let isSame: @Sendable (EnqueueOptions, EnqueueOptions) -> Bool
        let encode: @Sendable (EnqueueOptions, inout KeyedEncodingContainer<MemberName>) throws -> Void
        let decode: @Sendable (inout EnqueueOptions, KeyedDecodingContainer<MemberName>) throws -> Void
    }

    /// All members. A new option needs one line here.
    static let members: [Member] = [
        optional("id", .call, \.id),
        optional("lane", .call, \.lane),
        plain("fifo", .call, \.isFIFO),
        plain("priority", .call, \.priority),
        seconds("ttlSeconds", .call, \.timeToLive, "1 ms to 366 days"),
        optional("deadline", .call, \.deadline),
        optional("notBefore", .call, \.notBefore),
        optional("maxAttempts", .both, \.maximumAttempts),
        seconds("connectTimeoutSeconds", .both, \.timeouts.connect, AttemptTimeouts.accepted),
        seconds("responseTimeoutSeconds", .both, \.timeouts.response, AttemptTimeouts.accepted),
        member("totalTimeoutSeconds", .both, \.timeouts.total) {
            $0.map { $0 / .seconds(1) }
        } from: {
            try duration($0, "totalTimeoutSeconds", AttemptTimeouts.accepted)
        },
        member("httpVersion", .both, \.httpVersion, { $0?.rawValue }) { try choice($0, "httpVersion") },
        statuses("retryStatuses", \.statusRules.retry),
        statuses("deadStatuses", \.statusRules.dead),
        optional("replaceKey", .call, \.replaceKey),
        plain("dependencies", .call, \.dependencies),
        member("expect", .both, \.expectation, { "\($0)" }) { try Expectation(parsing: $0) },
        plain("atMostOnce", .both, \.isAtMostOnce),
        idempotency,
        optional("credential", .call, \.credential),
        plain("allowSignature", .call, \.allowsSignature),
        optional("tag", .call, \.tag),
        optional("onDone", .both, \.onDone),
        member("constraints", .both, \.constraints, { "\($0)" }) { text in
            guard text.utf8.count <= RequestConstraints.maximumTextBytes else {
                let limit = RequestConstraints.maximumTextBytes
                throw QueueError(
                    .invalidOption,
                    "`constraints` has \(text.utf8.count) bytes; the maximum is \(limit)"
                )
            }
            return RequestConstraints(stored: text)
        },
        member("durability", .call, \.durability, { $0.rawValue }) { try choice($0, "durability") },
        member("whenFull", .call, \.whenFull, { $0.rawValue }) { try choice($0, "whenFull") },
        optional("webhookOf", .stored, \.webhookOf),
        plain("isRecorded", .stored, \.isRecorded),
    ]
}

extension EnqueueOptions {
    private typealias Path<Value> = any WritableKeyPath<EnqueueOptions, Value> & Sendable

    /// A member whose value has another form in JSON.
    ///
    /// - Parameters:
    ///   - form: Returns the form in JSON; `nil` for a missing member.
    ///   - value: Returns the value of a form, or throws ``QueueError``.
    private static func member<Value: Equatable & Sendable, Form: Codable & Sendable>(
        _ name: String,
        _ use: Member.Use,
        _ path: Path<Value>,
        _ form: @escaping @Sendable (Value) -> Form?,
        from value: @escaping @Sendable (Form) throws -> Value
    ) -> Member {
        let key = MemberName(stringValue: name)
        return Member(
            name: name,
            use: use,
            isSame: { $0[keyPath: path] == $1[keyPath: path] },
            encode: { options, container in
                try container.encodeIfPresent(form(options[keyPath: path]), forKey: key)
            },
            decode: { options, container in
                guard let found = try container.decodeIfPresent(Form.self, forKey: key) else { return }
                options[keyPath: path] = try value(found)
            }
        )
    }

    private static func plain<Value: Codable & Equatable & Sendable>(
        _ name: String,
        _ use: Member.Use,
        _ path: Path<Value>
    ) -> Member {
        member(name, use, path, { $0 }, from: { $0 })
    }

    private static func optional<Value: Codable & Equatable & Sendable>(
        _ name: String,
        _ use: Member.Use,
        _ path: Path<Value?>
    ) -> Member {
        member(name, use, path, { $0 }, from: { $0 })
    }

    private static func seconds(
        _ name: String,
        _ use: Member.Use,
        _ path: Path<Duration>,
        _ accepted: String
    ) -> Member {
        member(name, use, path, { $0 / .seconds(1) }) { try duration($0, name, accepted) }
    }

    private static func statuses(_ name: String, _ path: Path<[ClosedRange<Int>]>) -> Member {
        member(name, .both, path, StatusRanges.text) { text in
            do throws(QueueError) { return try StatusRanges.parse(text) } catch {
                throw QueueError(.invalidOption, "`\(name.snakeCase)`: \(error.message)")
            }
        }
    }

    private static func choice<Value: RawRepresentable<String> & CaseIterable>(
        _ text: String,
        _ name: String
    ) throws(QueueError) -> Value {
        if let value = Value(rawValue: text) { return value }
        let accepted = Value.allCases.map(\.rawValue).joined(separator: ", ")
        throw QueueError(
            .invalidOption,
            "`\(name.snakeCase)` is \(quoted(text)); it must be one of \(accepted)"
        )
    }

    /// Converts seconds to a duration, in whole microseconds. Rejects only numbers that would overflow;
    /// ``RequestChecks`` checks the range.
    private static func duration(
        _ seconds: Double,
        _ name: String,
        _ accepted: String
    ) throws(QueueError) -> Duration {
        guard (-1e9...1e9).contains(seconds) else {
            throw QueueError(
                .invalidOption,
                "`\(name.snakeCase)` is \(seconds); it must be \(accepted)"
            )
        }
        return .microseconds(Int64((seconds * 1e6).rounded()))
    }

    /// `idempotency_key` if only the value of the key is given, otherwise `idempotency`.
    private static let idempotency = Member(
        name: "idempotency",
        use: .call,
        isSame: { $0.idempotencyKey == $1.idempotencyKey },
        encode: { options, container in
            let key = options.idempotencyKey
            if case .value(let value) = key.source, key == .value(value) {
                try container.encode(value, forKey: MemberName(stringValue: "idempotencyKey"))
            } else {
                try container.encode(key, forKey: MemberName(stringValue: "idempotency"))
            }
        },
        decode: { options, container in
            let short = MemberName(stringValue: "idempotencyKey")
            let value = try container.decodeIfPresent(String.self, forKey: short)
            let key = try container.decodeIfPresent(
                IdempotencyKey.self,
                forKey: MemberName(stringValue: "idempotency")
            )
            guard value == nil || key == nil else {
                throw DecodingError.dataCorruptedError(
                    forKey: short,
                    in: container,
                    debugDescription: "`idempotency` and `idempotency_key` cannot be combined"
                )
            }
            options.idempotencyKey = key ?? value.map(IdempotencyKey.value) ?? options.idempotencyKey
        }
    )
}
