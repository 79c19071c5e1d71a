"""Ministack as the deployed test runs it, see ministack.ts: what it lacks, and what a test has to see of it.

Loaded by hypercorn as `ministack_host:app`. It reaches into ministack's insides, so it goes with the pinned version only;
where something is not as expected it fails at the start. JOBWIRE_HOST_DIR is a directory shared with the test:
  clock        by how many seconds everybody's clock is ahead; written by the test
  workers.json the functions at work: {process id: function name}; written here
"""

import asyncio
import datetime
import json
import os
import re
import signal
import sys
import threading
import time

HOST_DIR = os.environ["JOBWIRE_HOST_DIR"]


def end_with_parent():
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


threading.Thread(target=end_with_parent, daemon=True).start()


# --- The clock. Replaced before ministack is imported, so that its imports use the replacement too.
def ahead_seconds():
    with open(os.path.join(HOST_DIR, "clock")) as file:
        return float(file.read())


real_time, RealDatetime = time.time, datetime.datetime


class MovedDatetime(RealDatetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls):
        return cls.fromtimestamp(time.time(), datetime.timezone.utc).replace(tzinfo=None)


time.time = lambda: real_time() + ahead_seconds()
datetime.datetime = MovedDatetime

from ministack import app as ministack  # noqa: E402
from ministack.core import concurrency, iam_actions, iam_evaluator, lambda_runtime  # noqa: E402
from ministack.services import apigateway_v1, dynamodb, lambda_svc, ses_v2, sns, sqs  # noqa: E402
from ministack.services.cloudformation import provisioners  # noqa: E402

# --- CloudFormation: FIFO topics are created as standard topics, Ref returns the name of a secret instead of its ARN, an alarm
# on an expression is rejected (here it only gets its name), and an SES identity has no DNS records.
TOPIC = provisioners._RESOURCE_HANDLERS["AWS::SNS::Topic"]
create_topic = TOPIC["create"]


def create_whole_topic(logical_id, props, stack_name):
    arn, attributes = create_topic(logical_id, props, stack_name)
    for name in ("FifoTopic", "ContentBasedDeduplication", "FifoThroughputScope"):
        if name in props:
            value = props[name]
            sns._topics[arn]["attributes"][name] = str(value).lower() if name != "FifoThroughputScope" else value
    return arn, attributes


TOPIC["create"] = create_whole_topic

SECRET = provisioners._RESOURCE_HANDLERS["AWS::SecretsManager::Secret"]
create_secret = SECRET["create"]


def create_secret_by_arn(logical_id, props, stack_name):
    _name, attributes = create_secret(logical_id, props, stack_name)
    return attributes["Arn"], attributes


SECRET["create"] = create_secret_by_arn

ALARM = provisioners._RESOURCE_HANDLERS["AWS::CloudWatch::Alarm"]
create_alarm = ALARM["create"]


def create_alarm_at_least_by_name(logical_id, props, stack_name):
    if "Metrics" not in props:
        return create_alarm(logical_id, props, stack_name)
    return logical_id, {"Arn": f"arn:aws:cloudwatch:us-east-1:000000000000:alarm:{logical_id}"}


ALARM["create"] = create_alarm_at_least_by_name

IDENTITY = provisioners._RESOURCE_HANDLERS["AWS::SES::EmailIdentity"]
create_identity = IDENTITY["create"]


def create_identity_with_records(logical_id, props, stack_name):
    name, attributes = create_identity(logical_id, props, stack_name)
    for at in (1, 2, 3):
        attributes[f"DkimDNSTokenName{at}"] = f"token{at}._domainkey.{name}"
        attributes[f"DkimDNSTokenValue{at}"] = f"token{at}.dkim.amazonses.com"
    return name, attributes


IDENTITY["create"] = create_identity_with_records

# --- IAM: a batch requires the permission of its single action.
extract_action = iam_actions.extract_iam_action


def single_action(*request):
    action = extract_action(*request)
    return re.sub(r"^((?:sqs|sns):\w+)Batch$", r"\1", action) if action else action


iam_actions.extract_iam_action = single_action

# --- A mail requires the permissions of SES: for the identity and the configuration set, with the sender's address. The action
# is the first by the documentation, the second by the observed responses to a raw message.
enforce_ses = ministack._enforce_ses_v2


def enforce_mail(method, path, headers, body, query_params, request_id):
    if path.rstrip("/") == "/v2/email/outbound-emails":
        mail = json.loads(body)
        sender = mail["FromEmailAddress"]
        names = [sender, sender.split("@")[1]]
        identity = next((name for name in names if name in ses_v2._identities), sender)
        resources = [ses_v2._resource_arn("identity", identity)]
        if "ConfigurationSetName" in mail:
            resources.append(ses_v2._resource_arn("configuration-set", mail["ConfigurationSetName"]))
        caller = ministack.extract_access_key_id(headers, query_params)
        region = ministack.extract_region(headers, query_params)
        context = {"ses:FromAddress": sender}
        checks = [(action, arn) for action in ("ses:SendEmail", "ses:SendRawEmail") for arn in resources]
        if not any(
            iam_evaluator.enforce(caller, action, "sesv2", region, resource_arn=arn, service_context=context)
            for action, arn in checks
        ):
            return None
    return enforce_ses(method, path, headers, body, query_params, request_id)


ministack._enforce_ses_v2 = enforce_mail

# --- IAM lacks dynamodb:LeadingKeys, the partition keys of a request.
service_context = iam_actions.dynamodb_service_context
transaction_checks = iam_actions.dynamodb_transaction_checks
PARTITION_KEY = "pk"


def named_keys(action):
    """The partition keys of one action of a request: those of a key or an item, or the one that a query names."""
    if "KeyConditionExpression" in action:
        names, values = action.get("ExpressionAttributeNames", {}), action.get("ExpressionAttributeValues", {})
        for name, value in re.findall(r"([#\w]+)\s*=\s*(:\w+)", action["KeyConditionExpression"]):
            if names.get(name, name) == PARTITION_KEY:
                return [values[value]["S"]]
        return []
    key = action.get("Key") or action.get("Item") or {}
    return [key[PARTITION_KEY]["S"]] if PARTITION_KEY in key else []


def batch_keys(data):
    for request in data.get("RequestItems", {}).values():
        for key in request["Keys"] if isinstance(request, dict) else []:
            yield from named_keys({"Key": key})
        for write in request if isinstance(request, list) else []:
            for action in write.values():
                yield from named_keys(action)


def context_with_keys(body):
    data = json.loads(body or b"{}")
    context = service_context(body)
    # The list object must stay the same: each check of a transaction adds its key.
    keys = [*named_keys(data), *batch_keys(data)]
    if keys or "TransactItems" in data:
        context["dynamodb:leadingkeys"] = keys
        checked.keys = keys
    return context


checked = threading.local()


class ChecksWithKeys(list):
    def __init__(self, checks, keys):
        super().__init__(checks)
        self.keys, self.leading = keys, checked.keys

    def __iter__(self):
        for check, key in zip(super().__iter__(), self.keys):
            self.leading[:] = key
            yield check


def checks_with_keys(iam_action, body, region, account_id):
    checks = transaction_checks(iam_action, body, region, account_id)
    if not checks:
        return checks
    keys = [named_keys(act) for item in json.loads(body)["TransactItems"] for act in item.values()]
    if len(keys) != len(checks) or not all(keys):
        raise RuntimeError("A transaction names what is not understood.")
    return ChecksWithKeys(checks, keys)


iam_actions.dynamodb_service_context = context_with_keys
iam_actions.dynamodb_transaction_checks = checks_with_keys

# --- IAM lacks kms:EncryptionContext, whose entries are conditions of a call.
tag_context = iam_actions.request_tag_context


def context_with_encryption(service, iam_action, body, params):
    context = tag_context(service, iam_action, body, params)
    if service != "kms":
        return context
    entries = json.loads(body or b"{}").get("EncryptionContext", {})
    return {**context, **{f"kms:encryptioncontext:{name}".lower(): value for name, value in entries.items()}}


iam_actions.request_tag_context = context_with_encryption

# --- API Gateway: it does not support the ARN for streaming invocations.
function_of_uri = apigateway_v1._extract_lambda_ref_from_integration_uri
apigateway_v1._extract_lambda_ref_from_integration_uri = lambda uri: function_of_uri(
    uri.replace("/response-streaming-invocations", "/invocations")
)

# --- The functions with an invocation.
at_work, at_work_lock = set(), threading.Lock()
invoke, spawn = lambda_runtime.Worker.invoke, lambda_runtime.Worker._spawn


def tell_at_work():
    processes = {worker._proc.pid: worker.func_name for worker in at_work if worker._proc is not None}
    path = os.path.join(HOST_DIR, "workers.json")
    with open(f"{path}.new", "w") as file:
        json.dump(processes, file)
    os.replace(f"{path}.new", path)


def invoke_and_tell(worker, *args, **kwargs):
    with at_work_lock:
        at_work.add(worker)
        tell_at_work()
    try:
        return invoke(worker, *args, **kwargs)
    finally:
        with at_work_lock:
            at_work.discard(worker)
            tell_at_work()


def spawn_and_tell(worker):
    spawn(worker)
    with at_work_lock:
        tell_at_work()


lambda_runtime.Worker.invoke = invoke_and_tell
lambda_runtime.Worker._spawn = spawn_and_tell

# --- Whether work is in progress. A pass of a poller counts as one unit.
passing = threading.Lock()


def one_at_a_time(poll):
    def turn():
        with passing:
            return poll()

    return turn


lambda_svc._poll_sqs = one_at_a_time(lambda_svc._poll_sqs)
lambda_svc._poll_dynamodb_streams = one_at_a_time(lambda_svc._poll_dynamodb_streams)


def under_way(but):
    with passing:
        executions = lambda_svc.executions_in_flight()[1]
        if any(count > 0 and key.split(":")[-1] != but for key, count in executions.items()):
            return True
        if lambda_svc._esm_inflight:
            return True
        for account, region, mapping in lambda_svc._iter_all_esms():
            source = mapping["EventSourceArn"]
            if ":sqs:" in source:
                queue = sqs._queue_by_arn(source)
                if any(message["visible_at"] <= time.time() for message in queue["messages"]):
                    return True
            elif mapping["LastProcessingResult"] != "FAILED":
                table = source.split("/")[1]
                position = lambda_svc._dynamodb_stream_positions.get_scoped(account, region, mapping["UUID"], 0)
                if position < dynamodb.stream_end_position(table, account_id=account, region=region):
                    return True
    return False


async def app(scope, receive, send):
    if scope["type"] == "http":
        if scope["path"] == "/_host/under-way":
            concurrency.esm_wake.set()
            answer = json.dumps(await asyncio.to_thread(under_way, scope["query_string"].decode())).encode()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": answer})
            return
        # Policies deny requests without TLS. Inside this machine, requests have none.
        scope = {**scope, "scheme": "https"}
    await ministack.app(scope, receive, send)
