#!/bin/bash
# 部署验证：用 curl 向推理服务发送一次对话请求
# 服务地址：http://127.0.0.1:8000（启动命令见部署指南）

curl http://127.0.0.1:8000/v1/chat/completions \
  -H "Content-Type: application/json" \
  -d '{
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "messages": [
      {"role": "system", "content": "你是一个乐于助人的助手。"},
      {"role": "user", "content": "请用一句话介绍大语言模型推理中的 KV Cache。"}
    ],
    "temperature": 0.7,
    "max_tokens": 128
  }'
