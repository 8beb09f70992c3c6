# 使用 OpenAI 官方 SDK 调用本地部署的推理服务
# 依赖：pip install openai
from openai import OpenAI

client = OpenAI(
    base_url="http://localhost:8000/v1",
    api_key="EMPTY",  # 本地服务不校验密钥，任意非空字符串即可
)

response = client.chat.completions.create(
    model="Qwen/Qwen2.5-7B-Instruct",
    messages=[
        {"role": "system", "content": "你是一名资深的运维工程师。"},
        {"role": "user", "content": "为什么推理服务要使用连续批处理（continuous batching）？请分三点说明。"},
    ],
    temperature=0.2,
    max_tokens=256,
)

print("回答：", response.choices[0].message.content)
print("结束原因：", response.choices[0].finish_reason)
print(
    f"用量：输入 {response.usage.prompt_tokens} tokens，"
    f"输出 {response.usage.completion_tokens} tokens，"
    f"合计 {response.usage.total_tokens} tokens"
)
