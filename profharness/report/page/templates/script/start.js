try {
  tips();
  tables();
  plots();
} catch (error) {
  failed(error);
}
