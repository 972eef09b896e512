"""Three services that talk over a queue, traced with the OpenTelemetry SDK: orders are sent, billed, and mailed about."""

import sys

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind

endpoint, orders = sys.argv[1], int(sys.argv[2])
providers = []


def service(name):
    provider = TracerProvider(resource=Resource({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    providers.append(provider)
    return provider.get_tracer("program")


def attributes(kind, queue):
    return {"messaging.system": "memory", "messaging.operation.type": kind, "messaging.destination.name": queue}


shop, billing, mail = service("shop"), service("billing"), service("mail")
for n in range(orders):
    with shop.start_as_current_span("send orders", kind=SpanKind.PRODUCER, attributes=attributes("send", "orders")) as sent:
        order = sent.get_span_context()
    # Joined by a link, in a trace of its own, as the conventions have it.
    with billing.start_as_current_span(
        "process orders",
        context=context.Context(),
        kind=SpanKind.CONSUMER,
        links=[Link(order)],
        attributes=attributes("process", "orders"),
    ):
        with billing.start_as_current_span("charge"):
            pass
        with billing.start_as_current_span("send bills", kind=SpanKind.PRODUCER, attributes=attributes("send", "bills")) as sent:
            bill = sent.get_span_context()
    # Joined by parenthood, with the older attribute names.
    carried = trace.SpanContext(bill.trace_id, bill.span_id, is_remote=True, trace_flags=bill.trace_flags)
    parent = trace.set_span_in_context(trace.NonRecordingSpan(carried))
    with mail.start_as_current_span(
        "bills process", context=parent, kind=SpanKind.CONSUMER, attributes={"messaging.operation": "process"}
    ):
        pass
for provider in providers:
    provider.shutdown()
