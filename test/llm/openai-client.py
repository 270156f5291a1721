"""The official openai client of PyPI against a service: openai-client.py BASE_URL KEY LIVE JOB. Prints one JSON object."""

import json
import sys
import time

import openai

base_url, key, live, job = sys.argv[1:]
client = openai.OpenAI(base_url=base_url, api_key=key, max_retries=0)
said = {}

plain = client.responses.create(model=live, input="Say hello.")
said["plain"] = [plain.status, plain.output_text, plain.usage.total_tokens]
said["retrieved"] = client.responses.retrieve(plain.id).output_text

events = list(client.responses.create(model=live, input="Say hello.", stream=True))
said["types"] = [event.type for event in events]
said["deltas"] = "".join(event.delta for event in events if event.type == "response.output_text.delta")

with client.responses.stream(model=live, input="Say hello.") as stream:
    for event in stream:
        pass
    final = stream.get_final_response()
said["final"] = [final.status, final.output_text]

response = client.responses.create(model=job, input="Say hello.", background=True)
while response.status in ("queued", "in_progress"):
    time.sleep(0.01)
    response = client.responses.retrieve(response.id)
said["background"] = [response.status, response.output_text]

parameters = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
tool = {"type": "function", "name": "add", "description": "Adds.", "parameters": parameters, "strict": True}
first = client.responses.create(model=live, input="call", tools=[tool])
call = next(item for item in first.output if item.type == "function_call")
result = {"type": "function_call_output", "call_id": call.call_id, "output": "2"}
conversation = [{"role": "user", "content": "call"}, *first.output, result]
second = client.responses.create(model=live, input=conversation, tools=[tool])
said["tool"] = [call.name, call.arguments, second.output_text]

schema = {"format": {"type": "json_schema", "name": "n", "schema": parameters, "strict": True}}
said["structured"] = json.loads(client.responses.create(model=live, input="json", text=schema).output_text)

headers = {"Idempotency-Key": "python"}
ids = {client.responses.create(model=live, input="Say hello.", extra_headers=headers).id for _ in range(2)}
said["ids"] = len(ids)
said["models"] = [model.id for model in client.models.list()]

try:
    client.responses.create(model="gpt-5", input="Say hello.")
except openai.UnprocessableEntityError as error:
    said["error"] = [error.status_code, error.code, error.param]

print(json.dumps(said))
