"""The batches of inference servers, told apart by the marks that vLLM and SGLang write."""
