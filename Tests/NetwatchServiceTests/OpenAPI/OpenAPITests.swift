internal import NIOHTTP1
internal import NetworkReachability
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// docs/openapi.json, compared with the sources.
@Suite struct OpenAPITests {
    private let document = OpenAPIDocument.current

    // MARK: Routes

    @Test func `the document has exactly the routes of the service`() async throws {
        let fixture = try await OpenAPIFixture()
        let routes = fixture.router.routes.map { "\($0.method.rawValue) \($0.path)" }
        #expect(routes.sorted() == document.operations.map(\.name).sorted())
        let readOnly = fixture.state.readOnlyRoutes.map { "\($0.method.rawValue) \($0.path)" }
        #expect(readOnly.sorted() == document.operations.filter(\.isReadOnly).map(\.name).sorted())
        await fixture.stop()
    }

    @Test func `each operation has the query names and the access of its route`() async throws {
        let fixture = try await OpenAPIFixture()
        for operation in document.operations {
            let route = try #require(
                fixture.router.routes.first { $0.method == operation.method && $0.path == operation.path }
            )
            let query = operation.parameters(in: "query")
            #expect(query.map(\.name).sorted() == route.query.sorted(), "\(operation.name)")
            let lists = query.filter { $0.schema["type"] == .string("array") }.map(\.name)
            #expect(lists == route.lists, "\(operation.name)")
            #expect(operation.description["x-access"] == .string("\(route.access)"), "\(operation.name)")
            let names = route.path.split(separator: "/").filter { $0.hasPrefix("{") }
            let documented = operation.parameters(in: "path").map { "{\($0.name)}" }
            #expect(names.map(String.init) == documented, "\(operation.name)")
        }
        await fixture.stop()
    }

    // MARK: Messages

    private static let messages: [(name: String, type: any (Decodable & Sendable).Type)] = [
        ("Attempt", RecordedAttempt.self), ("ClosedLane", QueueStatistics.ClosedLane.self),
        ("Completions", QueueStatistics.WaitingCompletions.self),
        ("Configuration", ControlMessage.Configuration.self), ("Credential", ControlMessage.Credential.self),
        ("Details", RequestDetails.self), ("EditMany", ControlMessage.Edit.self),
        ("EditResult", ControlMessage.Edited.Result.self), ("Edited", ControlMessage.Edited.self),
        ("EditedAll", ControlMessage.EditedAll.self), ("Entry", QueuedRequest.self),
        ("Event", ControlMessage.Event.self), ("ExportPage", ControlMessage.ExportPage.self),
        ("Filter", ControlMessage.Filter.self), ("Finding", ControlMessage.Finding.self),
        ("Flushed", ControlMessage.Flushed.self), ("History", ControlMessage.History.self),
        ("Host", ControlMessage.Host.self), ("Hosts", ControlMessage.Hosts.self),
        ("IDs", ControlMessage.IDs.self), ("Idempotency", IdempotencyKey.self),
        ("Import", ControlMessage.Import.self), ("Imported", ControlMessage.Imported.self),
        ("KeyUse", QueueStatistics.KeyUse.self), ("LaneClosure", LaneClosure.self),
        ("Lanes", LaneSelection.self),
        ("LastGood", ControlMessage.LastGood.self), ("LastReload", ControlMessage.LastReload.self),
        ("LeftOut", ControlMessage.LeftOut.self), ("List", ControlMessage.List.self),
        ("NameEntry", ControlMessage.Names.Name.self), ("Names", ControlMessage.Names.self),
        ("Network", ControlMessage.Network.self), ("Outage", ControlMessage.History.Outage.self),
        ("Paused", ControlMessage.Paused.self), ("PausedLane", QueueStatistics.PausedLane.self),
        ("Piece", ControlMessage.Piece.self), ("Push", ControlMessage.Push.self),
        ("Queue", ControlMessage.Queue.self),
        ("Redacted", ControlMessage.Redacted.self), ("RedactedDetails", ControlMessage.RedactedDetails.self),
        ("Reloaded", ControlMessage.Reloaded.self), ("RemovedBodies", ControlMessage.RemovedBodies.self),
        ("Response", RecordedResponse.self), ("RetryMany", ControlMessage.Edit.self),
        ("Scan", ControlMessage.Scan.self),
        ("Sent", ControlMessage.Sent.self), ("ServiceStatus", ControlMessage.Status.self),
        ("StagedBodies", ControlMessage.StagedBodies.self),
        ("StagedBody", ControlMessage.StagedBody.self), ("Statistics", QueueStatistics.self),
        ("Step", ControlMessage.History.Step.self), ("StoreCheck", ControlMessage.StoreCheck.self),
        ("Upload", ControlMessage.StagedBodies.Upload.self),
        ("Uptime", ControlMessage.Uptime.self), ("Verification", ControlMessage.Verification.self),
        ("Webhook", Webhook.self),
    ]

    /// Schemas of objects without a type of `ControlMessage`. The conformance tests check them by requests.
    private static let others: Set<String> = [
        "Counts", "EditOne", "HostCounts", "Problem", "RetryOne", "Send",
    ]

    @Test(arguments: messages.indices)
    func `a schema has the members of its type`(index: Int) throws {
        let (name, type) = Self.messages[index]
        let shape = try MessageShape(of: type)
        #expect(differences(document.schema(name), shape, at: name) == [])
    }

    /// Some members exclude each other, so that no message has all of them.
    @Test func `the schema of a request to send has its members`() {
        let schema = document.schema("Send")
        let names = ControlMessage.Send.memberNames.map(\.snakeCase)
        #expect(Set(schema["properties"]?.members.keys ?? [:].keys) == Set(names))
        #expect(schema["required"]?.elements.map(\.string) == ["url"])
    }

    @Test func `every schema of an object is compared with a type`() {
        let schemas = (document.root["components"]?["schemas"] ?? .null).members
        let objects = schemas.filter { $0.value["type"] == .string("object") }.map(\.key)
        #expect(Set(objects) == Set(Self.messages.map(\.name)).union(Self.others))
    }

    /// Returns where a schema differs from a shape.
    private func differences(_ schema: JSONValue, _ shape: MessageShape, at path: String) -> [String] {
        // A reference that may be null.
        let schema = document.resolved(schema["anyOf"]?.elements.first ?? schema)
        // Values in two forms have one Swift type, of which the shape has only one form.
        guard schema["oneOf"] == nil || schema["properties"] != nil else { return [] }
        let types =
            schema["type"]?.string.map { [$0] } ?? (schema["type"]?.elements ?? []).compactMap(\.string)
        switch shape {
        case .scalar(let type): return types.first == type ? [] : ["\(path) is not \(type)"]
        case .map: return types.first == "object" ? [] : ["\(path) is not an object"]
        case .array(let element):
            guard types.first == "array", let items = schema["items"] else {
                return ["\(path) is not an array"]
            }
            return differences(items, element, at: "\(path)[]")
        case .object(let members): return differences(schema, members, at: path)
        }
    }

    private func differences(
        _ schema: JSONValue,
        _ members: [String: MessageShape.Member],
        at path: String
    ) -> [String] {
        // The types do not decode a member that follows from others.
        let properties = (schema["properties"]?.members ?? [:]).filter { $0.value["x-derived"] == nil }
        var members = Dictionary(uniqueKeysWithValues: members.map { ($0.key.snakeCase, $0.value) })
        // The version is not part of the values that `Versioned` encodes.
        if properties["v"] != nil {
            members["v"] = MessageShape.Member(shape: .scalar("integer"), isRequired: true)
        }
        let required = Set((schema["required"]?.elements ?? []).compactMap(\.string))
        var found = Set(members.keys).symmetricDifference(properties.keys).map {
            "\(path).\($0) is in one only"
        }
        found += required.symmetricDifference(members.filter(\.value.isRequired).keys)
            .map { "\(path).\($0) is required in one only" }
        for (name, member) in members {
            guard let property = properties[name] else { continue }
            found += differences(property, member.shape, at: "\(path).\(name)")
            // The decoder of requests accepts null for a missing member.
            guard schema["additionalProperties"] == .boolean(false), !member.isRequired else { continue }
            let validator = SchemaValidator(document: document)
            if !validator.faults(of: .null, property).isEmpty {
                found.append("\(path).\(name) is not nullable")
            }
        }
        return found.sorted()
    }

    // MARK: Values

    @Test func `the schemas have the values of the types`() {
        func values(_ schema: JSONValue?) -> Set<String> {
            Set((schema?["enum"]?.elements ?? []).compactMap(\.string))
        }
        func names<Value: RawRepresentable<String> & CaseIterable>(_ type: Value.Type) -> Set<String> {
            Set(type.allCases.map(\.rawValue))
        }
        func property(_ schema: String, _ name: String) -> JSONValue? {
            document.schema(schema)["properties"]?[name]
        }
        #expect(values(document.schema("State")) == names(QueuedRequest.State.self))
        #expect(Set(document.schema("Counts")["properties"]!.members.keys) == names(QueuedRequest.State.self))
        #expect(values(document.schema("HoldReason")) == names(HoldReason.self))
        #expect(values(property("Finding", "kind")) == names(QueueVerification.Finding.Kind.self))
        #expect(values(property("Event", "event")) == names(QueueEvent.Kind.self).union(["reset"]))
        #expect(values(property("Send", "durability")) == names(Durability.self))
        #expect(values(property("Send", "when_full")) == names(FullQueuePolicy.self))
        #expect(values(property("Send", "queue")) == names(ControlMessage.QueueMode.self))
        let constraints = property("Send", "constraints")?["description"]?.string ?? ""
        #expect(InterfaceType.allCases.allSatisfy { constraints.contains($0.rawValue) })
        #expect(values(property("History", "window")) == names(HistoryWindow.self))
        #expect(values(property("Problem", "class")) == names(ConnectionClass.self))
    }

    @Test func `the schemas have the limits of the service`() {
        for operation in document.operations {
            guard let body = operation.body else { continue }
            let limit = body.isJSON ? ControlMessage.maximumMessageBytes : ControlMessage.maximumPieceBytes
            #expect(body.maximumBytes == limit, "\(operation.name)")
        }
        let ids = document.schema("EditMany")["properties"]?["ids"]
        #expect(ids?["maxItems"]?.number == Double(ControlMessage.mostIDs))
        #expect(
            document.schema("List")["properties"]?["requests"]?["maxItems"]?.number
                == Double(ControlMessage.longestPage)
        )
        #expect(
            document.schema("Send")["properties"]?["url"]?["maxLength"]?.number
                == Double(QueueRequest.maximumURLBytes)
        )
    }

    @Test func `every code of an error of the queue is documented with its status`() {
        var documented: Set<QueueError.Code> = []
        for response in (document.root["components"]?["responses"] ?? .null).members.values {
            let properties = response["content"]?["application/problem+json"]?["schema"]?["properties"]
            for code in (properties?["code"]?["enum"]?.elements ?? []).compactMap(\.string) {
                guard let code = QueueError.Code(rawValue: code) else { continue }
                documented.insert(code)
                let problem = Problem(QueueError(code, ""))
                #expect(properties?["status"]?["const"]?.number == Double(problem.status.code), "\(code)")
            }
        }
        #expect(documented == Set(QueueError.Code.allCases))
    }
}
